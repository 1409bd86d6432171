/** Sends an HTTP answer as messages of a WebSocket, as fast as the client reads. */
import type { Socket } from "../../../core/http/socket.ts";
import { retirementHeaderNames } from "../../../core/operations/headers.ts";
import type { JsonObject } from "../../../core/protocol/json.ts";
import type { Create } from "./create.ts";
import { errorEvent, eventsIn, inLane, ofRequest, steerFailed } from "./server-event.ts";

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
