/** Writes a whole answer as a Response. */
import type { Result } from "../../inference/result.ts";
import { AnswerItems } from "./answer-items.ts";
import type { ResponseObject, ResponsesRequest } from "./contract.ts";
import { begunResponse, endedResponse, outcomeOf } from "./response-object.ts";

export function encodeResponse(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const items = new AnswerItems(wire, result.responseId, result.model);
  const outcome = outcomeOf(result.reason);
  const last = result.parts.length - 1;
  const output = result.parts.map((part, index) =>
    items.itemOf(part, index, index === last ? outcome.status : "completed"),
  );
  const { usage } = result;
  return endedResponse(begunResponse(wire, result), { output, usage, outcome, atSeconds: endedAtSeconds });
}
