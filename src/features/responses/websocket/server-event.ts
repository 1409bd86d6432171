/**
 * The events that a client gets on a WebSocket: errors, and the events of a stream without their SSE frames. They are
 * sent as fast as the client reads.
 */
import type { Socket } from "../../../core/http/socket.ts";
import { retirementHeaderNames } from "../../../core/operations/headers.ts";
import type { JsonObject } from "../../../core/protocol/json.ts";
import type { SteeringRefused } from "./client-event.ts";
import type { Create } from "./create.ts";

/** Marks the end of a stream. It is not sent, because a WebSocket stays open. */
const done = "[DONE]";
const head = "data: ";

/** The JSON of the events in whole frames of a stream, extracted one by one: there may be thousands. */
export function* eventsIn(frames: string): Generator<string, void, void> {
  for (let from = 0; from < frames.length; ) {
    const end = frames.indexOf("\n\n", from);
    const data = frames.slice(frames.indexOf(head, from) + head.length, end);
    if (data !== done) yield data;
    from = end + 2;
  }
}

/** Adds the id of a lane (`stream_id`) to the event. Responses of one lane run one after another. */
export function inLane(event: string, streamId: string | null): string {
  return streamId === null ? event : withField(event, "stream_id", streamId);
}

/**
 * Adds to the event what an answer over HTTP has in its headers: the request's id, and the headers about the retirement
 * of its model.
 */
export function ofRequest(event: string, requestId: string, headers: Record<string, string> = {}): string {
  const identified = withField(event, "request_id", requestId);
  return Object.keys(headers).length > 0 ? withField(identified, "headers", headers) : identified;
}

function withField(event: string, name: string, value: string | Record<string, string>): string {
  return `${event.slice(0, -1)},"${name}":${JSON.stringify(value)}}`;
}

export interface RefusalEvent {
  status: number;
  /** The body of the same refusal over HTTP. */
  error: JsonObject;
  /** The headers that the same refusal has over HTTP, but only those that some client acts on. */
  headers?: Record<string, string>;
}

/**
 * The event of an error. Codex reads `status`, `error` and `headers`; the event's type in OpenAI's SDK also has `code`,
 * `message` and `param`.
 */
export function errorEvent({ status, error, headers }: RefusalEvent, streamId: string | null = null): string {
  const { code = null, message = "", param = null } = error;
  const event = { type: "error", status, error, headers, code, message, param, sequence_number: 0 };
  return inLane(JSON.stringify(event), streamId);
}

/**
 * The event that refuses to steer a response. As at OpenAI, it returns the client's input, because none of it was used.
 */
export function steerFailed({ event, message }: SteeringRefused): string {
  const { previous_response_id, input } = event as JsonObject;
  return JSON.stringify({
    type: "response.steer.failed",
    error: { type: "invalid_request_error", code: "steering_not_supported", message },
    steer: { previous_response_id, input },
    sequence_number: 0,
  });
}

/** Sends the answer, and resolves when all was sent. If the client has left, the rest of the stream is cancelled. */
export async function relay(response: Response, { streamId, steering }: Create, socket: Socket): Promise<void> {
  if (steering) return socket.send(steerFailed(steering));
  if (response.status !== 200) return socket.send(await refusalIn(response, streamId));
  const decoder = new TextDecoder();
  const requestId = response.headers.get("x-service-request-id")!;
  let isFirst = true;
  for await (const frames of response.body!) {
    for (const event of eventsIn(decoder.decode(frames))) {
      const message = isFirst ? ofRequest(event, requestId, picked(response, retirementHeaderNames)) : event;
      await socket.send(inLane(message, streamId));
      isFirst = false;
      if (!socket.isOpen) return;
    }
  }
}

/** The headers that tell clients whether and when to ask again, and which id to quote in a complaint. */
const refusalHeaders = ["retry-after", "x-should-retry", "x-request-id", "x-codex-promo-message"] as const;

async function refusalIn(response: Response, streamId: string | null): Promise<string> {
  const { error } = (await response.json()) as { error: JsonObject };
  const headers = picked(response, [...refusalHeaders, ...retirementHeaderNames]);
  return errorEvent({ status: response.status, error, headers }, streamId);
}

function picked({ headers }: Response, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}
