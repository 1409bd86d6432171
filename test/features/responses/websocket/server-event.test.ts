/** The events on a WebSocket are the same as in an event stream, however the stream is split into chunks. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encodeSse } from "../../../../src/core/sse/decode.ts";
import { SteeringRefused, validateClientEvent } from "../../../../src/features/responses/websocket/client-event.ts";
import {
  errorEvent,
  eventsIn,
  inLane,
  ofRequest,
  steerFailed,
} from "../../../../src/features/responses/websocket/server-event.ts";
import { forAll } from "../../../core/protocol/for-all.ts";
import { times } from "../../../harness/depth.ts";

test("any events in whole frames come out as they went in, without the end of the stream", () => {
  const events = fc.array(fc.record({ type: fc.string(), delta: fc.string({ unit: "grapheme" }) }));
  forAll([events, fc.boolean()], times(100, 1000), (all, isLast) => {
    const data = all.map((event) => JSON.stringify(event));
    const frames = data.map((text) => encodeSse({ event: "response.x", data: text }));
    if (isLast) frames.push(encodeSse({ data: "[DONE]" }));
    expect([...eventsIn(frames.join(""))]).toEqual(data);
  });
});

test("a lane and the id of a request are fields of an event", () => {
  const event = '{"type":"response.created","sequence_number":0}';
  expect(inLane(event, null)).toBe(event);
  expect(JSON.parse(inLane(ofRequest(event, "req_1"), 'a "lane"'))).toEqual({
    ...{ type: "response.created", sequence_number: 0 },
    ...{ request_id: "req_1", stream_id: 'a "lane"' },
  });
});

test("an error has its status, its body and what the SDK's type names", () => {
  const error = { type: "invalid_request_error", code: "x", message: "It is wrong.", param: "input" };
  expect(JSON.parse(errorEvent({ status: 400, error, headers: { "retry-after": "1" } }))).toEqual({
    ...{ type: "error", status: 400, error, headers: { "retry-after": "1" }, sequence_number: 0 },
    ...{ code: "x", message: "It is wrong.", param: "input" },
  });
});

describe("an event of a client", () => {
  const create = { type: "response.create", model: "acme/writer-1", input: "hello" };

  test("is a request, with its lane and whether to answer", () => {
    const { request, ...rest } = validateClientEvent({ ...create, stream_id: "a", generate: false, stream: false });
    expect([rest, request]).toEqual([
      { streamId: "a", isGenerated: false },
      { model: "acme/writer-1", input: "hello", stream: true },
    ]);
    expect(validateClientEvent({ ...create, stream_id: null, generate: null })).toMatchObject({
      ...{ streamId: null, isGenerated: true },
    });
  });

  test("that steers gets its input back", () => {
    const steer = { type: "response.steer", previous_response_id: "resp_1", input: "left" };
    let refused: unknown;
    try {
      validateClientEvent(steer);
    } catch (thrown) {
      refused = thrown;
    }
    expect(refused).toBeInstanceOf(SteeringRefused);
    expect(JSON.parse(steerFailed(refused as SteeringRefused))).toMatchObject({
      type: "response.steer.failed",
      error: { type: "invalid_request_error", code: "steering_not_supported" },
      steer: { previous_response_id: "resp_1", input: "left" },
    });
  });

  test("of any other form is a Fault that names the field", () => {
    const anything = fc.oneof(fc.anything(), fc.record({ type: fc.anything(), stream_id: fc.anything() }));
    forAll([anything], times(200, 2000), (event) => {
      expect(() => validateClientEvent(event)).toThrow(expect.objectContaining({ name: "Fault" }));
    });
  });
});
