import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../../src/inference/fault.ts";
import { anthropicMessagesUpstream } from "../../../src/protocol/anthropic-messages/codec.ts";
import { MessagesRequest } from "../../../src/protocol/anthropic-messages/contract.ts";
import { decodeRequest } from "../../../src/protocol/anthropic-messages/decode-request.ts";
import { validateMessagesRequest } from "../../../src/protocol/anthropic-messages/validate.ts";
import { contract } from "../../../src/protocol/contract.ts";
import { openaiChatUpstream } from "../../../src/protocol/openai-chat/codec.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const valid = {
  model: "acme/writer-1",
  max_tokens: 100,
  system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: [{ type: "text", text: "x" }, image] },
    { role: "system", content: "note" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "tool_use", id: "c", name: "f", input: { x: 1 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "c",
          content: [{ type: "tool_reference", tool_name: "f" }],
          is_error: true,
        },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "d" }, title: "t" },
      ],
    },
  ],
  stream: true,
  temperature: 1,
  stop_sequences: ["a"],
  tools: [{ name: "f", input_schema: { type: "object" } }],
  tool_choice: { type: "tool", name: "f" },
  thinking: { type: "enabled", budget_tokens: 1024 },
  output_config: { effort: "low", format: { type: "json_schema", schema: {} } },
  context_management: { edits: [{ type: "clear_thinking_20251015" }] },
  metadata: { user_id: "u" },
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

const words =
  "user tool system text image document tool_use tool_result thinking custom auto any none base64 url file c f".split(
    " ",
  );
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...words, "", 0, 1, 2, -1, 1.5, 1e300));
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant("replace" as const), by: anything }),
  fc.record({ kind: fc.constant("remove" as const) }),
  fc.record({
    kind: fc.constant("add" as const),
    name: fc.constantFrom("role", "type", "x", "content", "thread", "container", "tools"),
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
        validateMessagesRequest(body);
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
    { numRuns: 400 },
  );
});

test("the walk finds an offence exactly where the compiled check refuses", () => {
  const check = contract(MessagesRequest);
  fc.assert(
    fc.property(mutated, (body) => {
      const clean = check.violation(body).message.includes("does not satisfy the contract");
      expect(clean).toBe(check.satisfied(body));
    }),
    { numRuns: 400 },
  );
});

test("whatever is accepted can be put to an engine of either protocol, or is refused by name", () => {
  const ask = { model: "m", stream: true, outputTokensMax: 1000 };
  fc.assert(
    fc.property(mutated, (body) => {
      let wire: MessagesRequest;
      try {
        wire = validateMessagesRequest(body);
      } catch {
        return;
      }
      const request = decodeRequest(wire);
      for (const upstream of [openaiChatUpstream, anthropicMessagesUpstream]) {
        try {
          const asked = JSON.parse(JSON.stringify(upstream.request.encode(request, ask)));
          expect(asked.messages.length).toBeGreaterThan(0);
          expect(Object.values(asked)).not.toContain(null);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(Fault);
          expect((thrown as Fault).code).toBe("unsupported_feature");
        }
      }
    }),
    { numRuns: 400 },
  );
});
