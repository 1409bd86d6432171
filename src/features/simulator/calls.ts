/** Makes the tool calls of an answer, with their arguments. */
import type { AnswerInput } from "./conversation.ts";
import type { Directives, Quirk } from "./directives.ts";
import type { Part } from "./parts.ts";
import { SimulatorRefusal } from "./refusal.ts";
import type { Tool } from "./request.ts";
import { satisfying } from "./schema.ts";
import { hash, type Random, tokens } from "./text.ts";

type Call = Extract<Part, { kind: "call" }>;

const needOne: Quirk[] = ["whole-tool-call", "stop-with-tools", "cut-arguments", "text-after-tools", "repeated-ids"];
const needTwo: Quirk[] = [
  "two-calls-one-chunk",
  "interleaved-tools",
  "same-ids",
  "ids-missing",
  "index-always-0",
  "index-missing",
];

export function callsFor(input: AnswerInput, choice: number, next: Random): Call[] {
  const { request, conversation, directives } = input;
  const called = toolsCalled(input);
  const calls = called.map(({ tool, args }, index): Call => {
    const id = hash(`${choice} ${index}`, conversation.seed).toString(36).padStart(7, "0");
    const written = args ?? JSON.stringify(satisfying(withObject(tool.parameters), next));
    return { kind: "call", id: `call_sim${id}`, name: tool.name, tokens: tokens(written) };
  });
  const last = calls.at(-1);
  if (last && directives.quirks.has("cut-arguments"))
    last.tokens = last.tokens.slice(0, Math.ceil(last.tokens.length / 2));
  if (directives.quirks.has("same-ids")) for (const call of calls) call.id = calls[0]!.id;
  return request.parallelCalls ? calls : calls.slice(0, 1);
}

/** The schema of a tool's arguments. A schema without a type becomes the schema of an object. */
function withObject(parameters: unknown): unknown {
  const schema = typeof parameters === "object" && parameters !== null ? parameters : {};
  return "type" in schema || "$ref" in schema ? schema : { type: "object", ...schema };
}

interface ToolCall {
  tool: Tool;
  /** The arguments that a directive gives; null: they are generated. */
  args: string | null;
}

function toolsCalled({ request, conversation, directives }: AnswerInput): ToolCall[] {
  const { mode, only } = request.toolChoice;
  const allowed = request.tools.filter((tool) => only === null || only.includes(tool.name));
  const count = callCount(directives);
  const demanded = mode === "required";
  // Tool results are answered with text. Otherwise an agent whose history has a directive for calls would get calls for
  // ever.
  const cued = count > 0 && conversation.results.length === 0;
  if (mode === "none" || allowed.length === 0 || !(demanded || cued)) return [];
  const named = directives.calls.map(({ name, arguments: args }): ToolCall => {
    const tool = allowed.find((each) => each.name === name);
    if (tool) return { tool, args };
    const names = allowed.map((each) => each.name).join(", ");
    throw new SimulatorRefusal(
      400,
      `Simulator: there is no tool “${name}” to call. Known are: ${names}.`,
      "unknown_tool",
    );
  });
  const pool = named.length > 0 ? named : allowed.map((tool): ToolCall => ({ tool, args: null }));
  return Array.from({ length: Math.max(1, count) }, (_, index) => pool[index % pool.length]!);
}

function callCount(directives: Directives): number {
  const has = (quirk: Quirk) => directives.quirks.has(quirk);
  const quirky = needTwo.some(has) ? 2 : needOne.some(has) ? 1 : 0;
  return Math.max(directives.numbers.calls ?? 0, directives.calls.length, quirky);
}
