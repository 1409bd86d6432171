// Bodies as clients send them: a small one, and an agent's of 66 KB. Its make-up is that of recorded ones: a long
// instruction, two dozen tools with schemas, and turns with calls whose arguments and results are JSON and source text.

export const smallBody = '{"model":"acme/m","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}';

export const smallStream = '{"model":"acme/m","stream":true,"messages":[{"role":"user","content":"Hello"}]}';

const sentence = "Read the file before you change it, and say in one line what you are about to do and why.\n";
const source = `export function sum(values: number[]): number {\n  return values.reduce((one, other) => one + other, 0);\n}\n// "quoted"\n`;

function tool(at: number): object {
  const property = (name: string) => ({
    type: "string",
    description: `The ${name} of what is asked for, as it stands.`,
  });
  return {
    type: "function",
    function: {
      name: `tool_${at}`,
      description: sentence.repeat(4),
      parameters: {
        type: "object",
        properties: {
          path: property("path"),
          pattern: property("pattern"),
          limit: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
          mode: { type: "string", enum: ["read", "write", "list"] },
          tags: { type: "array", items: { type: "string" } },
        },
        required: ["path"],
        additionalProperties: false,
      },
    },
  };
}

function turns(at: number): object[] {
  const call = { name: `tool_${at % 24}`, arguments: JSON.stringify({ path: `src/file-${at}.ts`, limit: 100 }) };
  return [
    { role: "assistant", content: sentence, tool_calls: [{ id: `call_${at}`, type: "function", function: call }] },
    { role: "tool", tool_call_id: `call_${at}`, content: source.repeat(9) },
  ];
}

/** `more` are further members, such as a cap. */
export function agentBody(more: object): string {
  return JSON.stringify({
    model: "acme/m",
    messages: [
      { role: "system", content: sentence.repeat(130) },
      { role: "user", content: "Find where values are added up." },
      ...Array.from({ length: 21 }, (_, at) => turns(at)).flat(),
    ],
    tools: Array.from({ length: 24 }, (_, at) => tool(at)),
    tool_choice: "auto",
    temperature: 0.2,
    ...more,
  });
}
