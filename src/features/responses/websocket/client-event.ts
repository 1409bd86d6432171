/**
 * The events that a client sends on a WebSocket. `response.create` has the fields of a request, and fields that only a
 * WebSocket has.
 */
import { Fault } from "../../../core/inference/fault.ts";
import { isObject } from "../../../core/protocol/json.ts";
import type { ResponsesRequest } from "../../../core/protocol/openai-responses/contract.ts";
import { validateResponsesRequest } from "../../../core/protocol/openai-responses/validate.ts";
import { describe, invalid, missing, notSupported, violationFault } from "../../../core/protocol/violation.ts";

export interface CreateEvent {
  /** The id of the lane: responses of one lane run one after another. Null: the lane without a name. */
  streamId: string | null;
  /**
   * Whether the client wants an answer. If not, the conversation is only stored, so that the next response can continue
   * it.
   */
  isGenerated: boolean;
  request: ResponsesRequest;
}

/** A client's attempt to steer a running response, which is refused with a message of its own. */
export class SteeringRefused extends Fault {
  constructor(readonly event: unknown) {
    super("unsupported_feature", "This service does not support steering. Wait for the response, then continue it.", {
      param: "type",
    });
  }
}

/** Reads the event. Throws a Fault if it is not a valid `response.create`. */
export function validateClientEvent(event: unknown): CreateEvent {
  if (!isObject(event)) return { streamId: null, isGenerated: true, request: validateResponsesRequest(event) };
  const { type, stream_id, generate, stream: _, ...request } = event;
  if (type === "response.steer") throw new SteeringRefused(event);
  if (type === undefined) throw violationFault(missing("type", "Send an event, such as 'response.create'."));
  if (type !== "response.create")
    throw violationFault(invalid("type", `must be 'response.create', but is ${describe(type)}.`));
  if (request.background === true)
    throw violationFault(notSupported("background", "background responses on a WebSocket"));
  return {
    streamId: laneOf(stream_id),
    isGenerated: generates(generate),
    request: { ...validateResponsesRequest(request), stream: true },
  };
}

const laneChars_max = 128;

function laneOf(streamId: unknown): string | null {
  if (streamId === undefined || streamId === null) return null;
  if (typeof streamId === "string" && streamId !== "" && streamId.length <= laneChars_max) return streamId;
  throw violationFault(
    invalid("stream_id", `must be a text of 1 to ${laneChars_max} characters, but is ${describe(streamId)}.`),
  );
}

function generates(generate: unknown): boolean {
  if (generate === undefined || generate === null) return true;
  if (typeof generate === "boolean") return generate;
  throw violationFault(invalid("generate", `must be true or false, but is ${describe(generate)}.`));
}
