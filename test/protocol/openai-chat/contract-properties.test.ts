import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../../src/inference/fault.ts";
import { contract } from "../../../src/protocol/contract.ts";
import { ChatCompletionRequest } from "../../../src/protocol/openai-chat/contract.ts";
import { validateChatRequest } from "../../../src/protocol/openai-chat/validate.ts";

const valid = {
  model: "acme/writer-1",
  messages: [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "x" },
        { type: "image_url", image_url: { url: "https://x" } },
      ],
    },
    { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: "y" },
  ],
  stream: true,
  stream_options: { include_usage: true },
  temperature: 1,
  stop: ["a"],
  logit_bias: { "5": 1 },
  tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
  reasoning_effort: "low",
};

/** Every place in a JSON value, as paths. */
function places(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  const inner = value !== null && typeof value === "object" ? Object.entries(value) : [];
  const step = (key: string) => (Array.isArray(value) ? Number(key) : key);
  return [path, ...inner.flatMap(([key, child]) => places(child, [...path, step(key)]))];
}

function changed(value: unknown, path: (string | number)[], change: Change): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change.kind === "replace" ? change.by : value;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  if (rest.length === 0 && change.kind === "remove") delete copy[step];
  else if (rest.length === 0 && change.kind === "add") copy[change.name] = change.by;
  else copy[step] = changed(copy[step], rest, change);
  return copy;
}

type Change = { kind: "replace"; by: unknown } | { kind: "remove" } | { kind: "add"; name: string; by: unknown };

const words = ["user", "tool", "function", "text", "image_url", "custom", "auto", "json_object", "none", "", "c", "f"];
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...words, 0, 1, 2, -1, 1.5, 1e300));
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant("replace" as const), by: anything }),
  fc.record({ kind: fc.constant("remove" as const) }),
  fc.record({
    kind: fc.constant("add" as const),
    name: fc.constantFrom("role", "type", "x", "content", "n"),
    by: anything,
  }),
);
const mutated = fc
  .array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 3 })
  .map((changes) => changes.reduce((body: unknown, [at, how]) => changed(body, pick(places(body), at), how), valid))
  // As it would arrive: JSON knows no holes in arrays and no 1e400.
  .map((body) => JSON.parse(JSON.stringify(body)));
const pick = <Item>(list: Item[], at: number): Item => list[at % list.length]!;

test("any change to a valid body is accepted or refused with a client error whose path exists, or is missing", () => {
  fc.assert(
    fc.property(mutated, (body) => {
      try {
        validateChatRequest(body, []);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(Fault);
        const fault = thrown as Fault;
        expect(fault.status).toBe(400);
        expect(fault.message).not.toContain("does not satisfy the contract");
        expect(fault.message).not.toContain("undefined");
        const param = fault.details.param;
        if (param === undefined) expect(typeof body !== "object" || body === null || Array.isArray(body)).toBe(true);
        else if (fault.code !== "missing_field") expect(fault.message).toContain(param);
      }
    }),
    { numRuns: 3000 },
  );
});

test("the walk finds an offence exactly where the compiled check refuses", () => {
  const check = contract(ChatCompletionRequest, { topLevel: "closed" });
  fc.assert(
    fc.property(mutated, (body) => {
      const clean = check.violation(body).message.includes("does not satisfy the contract");
      expect(clean).toBe(check.satisfied(body));
    }),
    { numRuns: 3000 },
  );
});
