// The largest bodies that real agents send. They must be accepted, and may cost no more than an attack.

import type { Attack } from "./attack.ts";
import { type BodyOptions, body, mib, paths } from "./body.ts";

const wanted: BodyOptions = { path: paths.messages, wanted: "200" };
const asked = (model: string, fields: object) => JSON.stringify({ model, max_tokens: 10, ...fields });

export const honestBodies: readonly Attack[] = [
  body("honest: 128 tools with large schemas", { ...wanted, isQuick: true }, (model) =>
    asked(model, { tools: tools(128), messages: turns(20) }),
  ),
  body("honest: 5,000 messages", wanted, (model) => asked(model, { tools: tools(100), messages: turns(5_000) })),
  body("honest: a history of 4 MiB", wanted, (model) =>
    asked(model, { tools: tools(60), messages: turns(2_600, 1_200) }),
  ),
  body("honest: six images, 30 MiB", wanted, (model) => {
    const source = { type: "base64", media_type: "image/png", data: png(5 * mib) };
    return asked(model, { messages: [{ role: "user", content: Array(6).fill({ type: "image", source }) }] });
  }),
];

function tools(count: number): object[] {
  const property = (at: number) => ({
    ...{ type: "string", enum: ["a", "b"] },
    description: `What the tool should do with value ${at}, said in a sentence.`,
  });
  const properties = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`field_${at}`, property(at)]));
  const required = ["field_1", "field_2"];
  return Array.from({ length: count }, (_, at) => ({
    ...{ name: `tool_${at}`, description: "Reads a file and answers its text. ".repeat(20) },
    input_schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties, required },
  }));
}

/** The turns of an agent's conversation: each has a tool call of the assistant and its result. */
function turns(count: number, text_bytes = 100): object[] {
  const text = 'The quick brown fox said "hello".\n'.repeat(Math.ceil(text_bytes / 34));
  const words = { type: "text", text };
  return Array.from({ length: count }, (_, at) => {
    if (at === 0) return { role: "user", content: "go" };
    const input = { file_path: "/a/b", limit: 3, text };
    if (at % 2 === 1)
      return { role: "assistant", content: [words, { type: "tool_use", id: `toolu_${at}`, name: "tool_1", input }] };
    const result = { type: "tool_result", tool_use_id: `toolu_${at - 1}`, content: [words] };
    return { role: "user", content: [{ ...result, cache_control: { type: "ephemeral" } }] };
  });
}

function png(bytes: number): string {
  const head = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const rest = Buffer.alloc(Math.floor(bytes / 4) * 3 - head.length, 0x5a);
  return Buffer.concat([head, rest]).toString("base64");
}
