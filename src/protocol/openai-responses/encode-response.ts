/** A whole answer → a Response. */
import type { Result } from "../../inference/result.ts";
import { AnswerItems, cutBy } from "./answer-items.ts";
import type { ResponseObject, ResponsesRequest } from "./contract.ts";
import { begunResponse, endedResponse } from "./response-object.ts";

export function encodeResponse(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const items = new AnswerItems(wire, result.responseId, result.model);
  const reason = cutBy(result.reason);
  const last = result.parts.length - 1;
  const output = result.parts.map((part, index) =>
    items.itemOf(part, index, reason !== null && index === last ? "incomplete" : "completed"),
  );
  return endedResponse(begunResponse(wire, result), {
    output,
    usage: result.usage,
    outcome: reason ? { status: "incomplete", reason } : { status: "completed" },
    atSeconds: endedAtSeconds,
  });
}
