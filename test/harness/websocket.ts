// A client's WebSocket connection to /v1/responses, and the events that it receives.

import type { ResponseObject, ResponsesStreamEvent } from "../../src/core/protocol/openai-responses/contract.ts";
import { until } from "./until.ts";

export interface ErrorEvent {
  type: "error";
  status: number;
  error: { type: string; code: string; message: string; param: string | null; request_id: string };
  headers?: Record<string, string>;
  code: string;
  message: string;
  param: string | null;
}

export type ServerEvent = (ResponsesStreamEvent | ErrorEvent) & { stream_id?: string; request_id?: string };

export interface Talk extends Disposable {
  /** The state of the connection: "open", or the code with which the WebSocket was closed. */
  readonly state: "open" | number;
  /** Every event that was received. */
  readonly heard: readonly ServerEvent[];
  send(event: unknown): void;
  sendText(text: string | Uint8Array): void;
  /** Waits for the next response in this lane (`stream_id`), and returns its events, or its error. */
  answer(streamId?: string): Promise<ServerEvent[]>;
  /** Sends `response.create`, and returns the events of its response. */
  create(body: object): Promise<ServerEvent[]>;
  closed(): Promise<number>;
}

/** Opens a WebSocket. Rejects if the upgrade is refused. `ca`: the certificate that the client trusts. */
export async function talk(url: string, headers: Record<string, string>, ca?: string): Promise<Talk> {
  const options = { headers, ...(ca === undefined ? {} : { tls: { ca } }) };
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, options);
  const heard: ServerEvent[] = [];
  const read: Record<string, number> = {};
  let state: Talk["state"] | null = null;
  socket.onopen = () => {
    state = "open";
  };
  socket.onmessage = ({ data }) => void heard.push(JSON.parse(data as string) as ServerEvent);
  socket.onclose = ({ code }) => {
    state = code;
  };
  await until(() => state !== null, 10_000, "the WebSocket to open");
  if (state !== "open") throw new Error(`the WebSocket was refused, or closed with ${state}`);
  const inLane = (streamId?: string) => heard.filter((event) => event.stream_id === streamId);
  const answer = async (streamId?: string) => {
    const from = read[streamId ?? ""] ?? 0;
    const end = () => inLane(streamId).findIndex((event, at) => at >= from && isLast(event));
    await until(() => end() >= 0 || state !== "open", 15_000, "an answer");
    const to = end() + 1;
    read[streamId ?? ""] = to;
    return inLane(streamId).slice(from, to);
  };
  const send = (event: unknown) => socket.send(JSON.stringify(event));
  return {
    get state() {
      return state!;
    },
    heard,
    send,
    sendText: (text) => socket.send(text),
    answer,
    create(body) {
      send({ type: "response.create", ...body });
      return answer((body as { stream_id?: string }).stream_id);
    },
    async closed() {
      await until(() => state !== "open", 15_000, "the WebSocket to close");
      return state as number;
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}

const last = new Set([
  "error",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.steer.failed",
]);

function isLast({ type }: ServerEvent): boolean {
  return last.has(type);
}

export function responseIn(events: readonly ServerEvent[]): ResponseObject {
  const end = events.at(-1);
  if (!end || !("response" in end)) throw new Error(`an answer ends with ${JSON.stringify(end)}`);
  return end.response;
}

export function errorIn(events: readonly ServerEvent[]): ErrorEvent {
  const end = events.at(-1);
  if (end?.type !== "error") throw new Error(`expected an error, got ${JSON.stringify(end)}`);
  return end;
}
