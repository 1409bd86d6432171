/** The end of a stream whose encoder is gone: made of what it had written, so that the numbers of its events go on. */
import type { Fault } from "../../inference/fault.ts";
import { encodeSse } from "../../sse/encode.ts";
import type { SentFrames } from "../codec.ts";
import type { ResponseObject } from "./contract.ts";
import { encodeFailure } from "./fault.ts";

export function brokenStream({ first, last }: SentFrames, fault: Fault, requestId: string): string {
  const begun = /^data: (.*"type":"response\.created".*)$/m.exec(first)?.[1];
  const end = encodeSse({ data: "[DONE]" });
  if (begun === undefined) return end;
  const { response } = JSON.parse(begun) as { response: ResponseObject };
  const failed = { ...response, status: "failed", error: encodeFailure(fault, requestId) };
  const event = { type: "response.failed", response: failed, sequence_number: lastNumber(last) + 1 };
  return encodeSse({ event: event.type, data: JSON.stringify(event) }) + end;
}

/** The number of the last event in these frames. It stands at the end of each. */
export function lastNumber(frames: string): number {
  const numbers = [...frames.matchAll(/"sequence_number":(\d+)\}$/gm)];
  return Number(numbers.at(-1)?.[1] ?? -1);
}
