/**
 * The request that engines are sent. It is the same for all of them, except for what the context of each allows. Pure.
 */
import type { OwnBytes } from "../body/own-bytes.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { ResponseIdentity } from "../protocol/codec.ts";
import type { Affinity } from "../routing/affinity.ts";
import { type CatalogModel, type CodecOf, contextTokensOf, type Route } from "../routing/catalog.ts";
import type { Signals } from "./departure.ts";
import type { RunTrace } from "./trace.ts";

/** The part of a request's record that its engines need. */
export interface ForEngines {
  model: CatalogModel;
  request: InferenceRequest;
  /** Asks the engines; absent: the codec of the protocol that each speaks. */
  codecOf?: CodecOf;
  /** The size of the caller's request with everything that it refers to, from which `inputTokens` was estimated. */
  inputBytes: number;
  /** The bytes of a large request as the caller wrote them, for the first engine. */
  own?: OwnBytes | null;
  /** An upper estimate of the whole prompt. */
  inputTokens: number;
  identity: ResponseIdentity;
  /** The plan under which the request was admitted. */
  plan: { readonly name: string };
  /** The key of its session. */
  affinity: Affinity;
  /** Set for a background response. */
  fetched?: { readonly asProduced: boolean } | null;
  /** Called with the memory that the answer takes, if it is much. Throws the Fault that then ends the request. */
  holdAnswer?: ((bytes: number) => void) | undefined;
}

export interface AttemptRequest extends Signals {
  asked: ForEngines;
  /** The output tokens that an answer may have, by the model, its context, and the nanos held so far. */
  room: { allowed: number; held: number };
  /** Resolves when the ledger has decided. A request waits for a slot only after that. */
  granted: Promise<void>;
  /** The routes that are not asked, because they have failed in the middle of this answer; absent if it is a new one. */
  except?: readonly Route[];
  /** Observes each attempt, if the run is traced. */
  trace?: RunTrace | null;
}

export interface AttemptsSettings {
  /** Up to this cap, an answer that the caller does not stream is requested whole. */
  unstreamed_tokens_max: number;
}

export interface EngineRequest {
  stream: boolean;
  /** How long parts are gathered before they are read; 0 if a caller reads them as they arrive. */
  gather_ms: number;
  /** The output tokens that a usage window leaves, if that is less than the request's own cap. */
  windowTokens: number | null;
  /** The most tokens of an answer that is requested whole; 0 if it is streamed. */
  wholeTokens: number;
  /** The load that the request puts on an engine, in tokens: its input, and an answer of ordinary length. */
  busyTokens: number;
  at(route: Route): {
    model: string;
    request: InferenceRequest;
    outputTokens_max: number;
    instructionsInside?: boolean;
  };
}

/** The most that counts as an ordinary answer. Caps are far above that and would hide the inputs. */
const answer_tokens = 1024;

/** docs/design/usage.md, Answers that aren't streamed. */
const unstreamed_gather_ms = 100;

/** Whether somebody may have read the answer as far as it goes, so that it cannot begin again. */
export function isReadAsProduced({ request, fetched }: Pick<ForEngines, "request" | "fetched">): boolean {
  return request.stream || fetched?.asProduced === true;
}

export function engineRequestOf({ asked, room }: AttemptRequest, settings: AttemptsSettings): EngineRequest {
  const { model, request, inputTokens } = asked;
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  // The two forms of an answer that is passed on are not made of each other.
  const stream = isReadAsProduced(asked) || (!request.passed && cap > settings.unstreamed_tokens_max);
  // An answer that comes whole cannot be cut short, and its hold cannot grow.
  const windowTokens = !stream && room.held < cap ? room.held : null;
  // A cap above what is allowed is lowered: the answer then ends with `length`.
  const isCapped = request.outputTokens_max !== undefined || windowTokens !== null;
  return {
    stream,
    gather_ms: request.stream || request.passed ? 0 : unstreamed_gather_ms,
    windowTokens,
    wholeTokens: stream ? 0 : (windowTokens ?? cap),
    busyTokens: inputTokens + Math.min(cap, answer_tokens),
    at(route) {
      const context = contextTokensOf(model, route);
      const largest = request.passed?.largestTokens ?? inputTokens;
      const most = context < model.contextTokens ? Math.max(1, context - largest) : Number.POSITIVE_INFINITY;
      const lowered = Math.min(most, windowTokens ?? cap);
      const isAsAsked = !isCapped || lowered === request.outputTokens_max;
      return {
        model: route.model,
        request: isAsAsked ? request : { ...request, outputTokens_max: lowered },
        outputTokens_max: Math.min(most, room.allowed),
        ...(route.instructionsInside === undefined ? {} : { instructionsInside: route.instructionsInside }),
      };
    },
  };
}
