/** Bad input, by mutation: whatever a client sends is a request or a client error, and what is accepted can be served. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../../src/inference/fault.ts";
import { contract } from "../../../src/protocol/contract.ts";
import { openaiChatUpstream } from "../../../src/protocol/openai-chat/codec.ts";
import { openaiResponsesCaller, openaiResponsesUpstream } from "../../../src/protocol/openai-responses/codec.ts";
import { ResponsesRequest, TypedResponsesRequest } from "../../../src/protocol/openai-responses/contract.ts";
import { validateResponsesRequest } from "../../../src/protocol/openai-responses/validate.ts";

const f = { type: "function", name: "f", parameters: { type: "object" }, strict: null };
const p = { type: "custom", name: "p", format: { type: "grammar", syntax: "lark", definition: "x" } };
const valid = {
  model: "acme/writer-1",
  instructions: "s",
  input: [
    { role: "developer", content: "d" },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "x" },
        { type: "input_image", image_url: "https://x", detail: "auto" },
        { type: "input_file", file_data: "eA==", filename: "x.pdf" },
      ],
    },
    { type: "reasoning", summary: [{ type: "summary_text", text: "r" }], encrypted_content: "e" },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}", namespace: "n" },
    { type: "custom_tool_call", call_id: "k", name: "p", input: "ls" },
    { type: "function_call_output", call_id: "c", output: "y" },
    { type: "custom_tool_call_output", call_id: "k", output: [{ type: "input_text", text: "z" }] },
    { type: "additional_tools", role: "developer", tools: [p] },
  ],
  stream: true,
  temperature: 1,
  tools: [f, { type: "namespace", name: "n", tools: [f, p] }, { type: "web_search" }],
  tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
  parallel_tool_calls: false,
  text: { format: { type: "json_schema", name: "n", schema: {} } },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  store: false,
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

const words = [
  "user",
  "function",
  "input_text",
  "custom",
  "auto",
  "json_object",
  "none",
  "",
  "c",
  "f",
  "message",
  "constructor",
];
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...words, 0, 1, 2, -1, 1.5, 1e300));
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant("replace" as const), by: anything }),
  fc.record({ kind: fc.constant("remove" as const) }),
  fc.record({
    kind: fc.constant("add" as const),
    name: fc.constantFrom("role", "type", "x", "content", "id", "context_management", "background"),
    by: anything,
  }),
);
const mutated = fc
  .array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 3 })
  .map((changes) => changes.reduce((body: unknown, [at, how]) => changed(body, pick(places(body), at), how), valid))
  // As it would arrive: JSON knows no holes in arrays and no 1e400.
  .map((body) => JSON.parse(JSON.stringify(body)));
const pick = <Item>(list: Item[], at: number): Item => list[at % list.length]!;

/** What was accepted reaches engines, and an answer to it is one that a client can be given. */
function served(wire: ReturnType<typeof validateResponsesRequest>): void {
  const request = openaiResponsesCaller.request.decode(wire);
  const ask = { model: "engine", stream: true, outputTokensMax: 1000 };
  JSON.stringify(openaiChatUpstream.request.encode(request, ask));
  JSON.stringify(openaiResponsesUpstream.request.encode(request, ask));
  const identity = { responseId: `resp_${"0".repeat(32)}`, createdAtSeconds: 1, model: wire.model };
  const encoder = openaiResponsesCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  encoder.heartbeat();
  expect(encoder.end().at(-1)?.data).toBe("[DONE]");
}

test("any change to a valid body is accepted or refused with a client error whose path exists, or is missing", () => {
  fc.assert(
    fc.property(mutated, (body) => {
      try {
        served(validateResponsesRequest(body));
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
    { numRuns: 1000 },
  );
});

test("the walk finds an offence exactly where the compiled check refuses", () => {
  const check = contract(TypedResponsesRequest, { longArray: "input" });
  fc.assert(
    fc.property(mutated, (body) => {
      const clean = check.violation(body).message.includes("does not satisfy the contract");
      expect(clean).toBe(check.satisfied(body));
    }),
    { numRuns: 1000 },
  );
});

test("what is published lets through what is served, and a message needs no type in it", () => {
  const published = contract(ResponsesRequest);
  expect(published.satisfied(valid)).toBe(true);
  fc.assert(
    fc.property(mutated, (body) => {
      const check = contract(TypedResponsesRequest);
      if (check.satisfied(body)) expect(published.satisfied(body)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test("a body whose keys are names of the language is data like any other", () => {
  const hostile = JSON.stringify(valid)
    .replace('"stream":true', '"stream":true,"__proto__":{"store":true},"constructor":1')
    .replace('"name":"f","namespace":"n"', '"name":"__proto__","namespace":"constructor"');
  const wire = validateResponsesRequest(JSON.parse(hostile));
  served(wire);
  expect(wire.store).toBe(false);
});
