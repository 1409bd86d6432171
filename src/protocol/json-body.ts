/** The bytes of a body that was looked over → its JSON value, strictly UTF-8. Faults: invalid_json. Pure. */
import { Fault } from "../inference/fault.ts";
import type { BodyShape } from "./body-scan.ts";
import { parseInSteps, parsingCost_ns, step_ns } from "./json-steps.ts";

export interface ScannedBody {
  bytes: Uint8Array;
  shape: BodyShape;
}

/** In one go, however long it takes. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw new Fault("invalid_json", "The request has no body. Send a JSON object.");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw noUtf8(cause);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw noJson(whereOf(cause), cause);
  }
}

/** The same with pauses, where it could take long. */
export function* parsingSteps({ bytes, shape }: ScannedBody): Generator<void, unknown, void> {
  if (parsingCost_ns(shape) <= step_ns) return parseJsonBody(bytes);
  try {
    return yield* parseInSteps(bytes);
  } catch (cause) {
    throw cause instanceof SyntaxError ? noJson("", cause) : noUtf8(cause);
  }
}

function noUtf8(cause: unknown): Fault {
  return new Fault("invalid_json", "The request's body is not valid UTF-8.", { cause });
}

function noJson(where: string, cause: unknown): Fault {
  return new Fault("invalid_json", `The request's body is not valid JSON${where}.`, { cause });
}

/** The parser's own words quote the body; only a position may pass. */
function whereOf(cause: unknown): string {
  const at = /position (\d+)/.exec(String((cause as Error)?.message))?.[1];
  return at ? ` (at position ${at})` : "";
}
