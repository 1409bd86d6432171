// Reads a stream of the Responses API as its clients do.

import type { ResponseObject, ResponsesStreamEvent } from "../../src/core/protocol/openai-responses/contract.ts";
import { dataIn } from "./frames.ts";

/** The events of a stream, without [DONE]. The check of every response (contract.ts) covers their names and order. */
export async function eventsOf(response: Response): Promise<ResponsesStreamEvent[]> {
  const data = dataIn(await response.text()).filter((one) => one !== "[DONE]");
  return data.map((one) => JSON.parse(one) as ResponsesStreamEvent);
}

/** The complete response object in the last event of a stream. */
export function finalOf(events: readonly ResponsesStreamEvent[]): ResponseObject {
  const last = events.at(-1);
  if (!last || !("response" in last)) throw new Error(`a stream ends with ${last?.type}`);
  return last.response;
}

export function textOf({ output }: Pick<ResponseObject, "output">): string {
  return output
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");
}
