// What clients of the Responses API make of a stream.

import type { ResponseObject, ResponsesStreamEvent } from "../../src/core/protocol/openai-responses/contract.ts";
import { dataIn } from "./frames.ts";

/** The events of a stream, without [DONE]. Their names and order are checked for every answer (contract.ts). */
export async function eventsOf(response: Response): Promise<ResponsesStreamEvent[]> {
  const data = dataIn(await response.text()).filter((one) => one !== "[DONE]");
  return data.map((one) => JSON.parse(one) as ResponsesStreamEvent);
}

/** The whole response that a stream has at its end. */
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
