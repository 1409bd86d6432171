/** Bodies and answers are parsed as JSON, but the numbers in a Messages call's input stay as they were written. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { anthropicMessagesUpstream } from "../../../src/core/protocol/anthropic-messages/codec.ts";
import { decodeRequest } from "../../../src/core/protocol/anthropic-messages/decode-request.ts";
import { parsedWithInputs } from "../../../src/core/protocol/tool-input.ts";
import { forAll } from "./for-all.ts";

const input =
  '{"id":1790123456789012345,"in":[-9007199254740993,{"share":0.1234567890123456789}],"text":"1790123456789012345"}';
const call = `{"input":${input},"type":"tool_use","id":"toolu_1","name":"find"}`;

test("the digits in the input of a call are kept, and no others", () => {
  const rounded = Number("1790123456789012345");
  const text = `{"seed":1790123456789012345,"content":[${call},{"type":"text","input":[1790123456789012345]},${call}]}`;
  expect(JSON.stringify(parsedWithInputs(text))).toBe(
    `{"seed":${rounded},"content":[${call},{"type":"text","input":[${rounded}]},${call}]}`,
  );
});

test("every other text is read as JSON.parse reads it", () => {
  const type = fc.constantFrom("tool_use", "text");
  const digits = fc.constantFrom("1234567890123456", "x12345678901234567890", "toolu_123456789012345");
  forAll([type, digits, fc.jsonValue()], 200, (type, id, value) => {
    const text = JSON.stringify({ type, id, value });
    expect(parsedWithInputs(text)).toEqual(JSON.parse(text));
    expect(() => parsedWithInputs(`${text}"tool_use" 1234567890123456`)).toThrow(SyntaxError);
  });
});

test("a call that a client sends back, and one that an engine answers with, have the digits in their arguments", () => {
  const body = parsedWithInputs(
    `{"model":"acme/m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[${call}]}]}`,
  );
  const [, turn] = decodeRequest(body as never).turns;
  expect(turn!.parts[0]).toMatchObject({ kind: "tool-call", arguments: input });
  const identity = { responseId: "msg_1", createdAtSeconds: 1, model: "acme/m" };
  const answer = parsedWithInputs(`{"role":"assistant","content":[${call}],"stop_reason":"tool_use"}`);
  const events = anthropicMessagesUpstream.response.decode(answer, identity);
  const written = events.flatMap((event) => (event.type === "part-delta" ? [event.delta] : []));
  expect(written.join("")).toBe(input);
});
