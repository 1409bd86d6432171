/** The request that engines are sent: the same for all of them, except for what the context of each allows. Pure. */
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
  /** The codec in which the engines are asked; absent: that of each engine's protocol. */
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
  /** The facts from which the key of its session is made (routing/affinity.ts). */
  affinity: Affinity;
  /** Set for a background response. */
  fetched?: { readonly asProduced: boolean } | null;
  /** Called with the memory that the answer takes, if that is much. May throw the Fault that ends the request. */
  holdAnswer?: ((bytes: number) => void) | undefined;
}

export interface AttemptRequest extends Signals {
  asked: ForEngines;
  /**
   * The output tokens that an answer may have: `allowed` by the model and its context, `held` by the nanos held so far.
   */
  room: { allowed: number; held: number };
  /** Resolves when the ledger has granted the request. Only then may the request wait for a slot. */
  granted: Promise<void>;
  /** Routes that must not be asked, because they failed in the middle of this answer. */
  except?: readonly Route[];
  /** Observes each attempt, if the run is traced. */
  trace?: RunTrace | null;
}

export interface AttemptsSettings {
  /**
   * If the cap on output is at most this, an answer that the caller does not stream is not streamed by the engine
   * either.
   */
  unstreamed_tokens_max: number;
}

export interface EngineRequest {
  stream: boolean;
  /** How long parts are gathered before they are read; 0 if a caller reads them as they arrive. */
  gather_ms: number;
  /** The output tokens that a usage window leaves, if those are fewer than the request's own cap. */
  windowTokens: number | null;
  /** The most tokens of an answer that the engine does not stream; 0 if it streams. */
  wholeTokens: number;
  /** The load that the request puts on an engine, in tokens: its input, and an answer of usual length. */
  busyTokens: number;
  at(route: Route): {
    model: string;
    request: InferenceRequest;
    outputTokens_max: number;
    instructionsInside?: boolean;
  };
}

/** The most tokens of a usual answer. Caps are far above that and would hide the inputs. */
const answer_tokens = 1024;

/** The rule: docs/design/usage.md, Answers that aren't streamed. */
const unstreamed_gather_ms = 100;

/** Whether the answer may have been read as far as it goes, so that it cannot begin again. */
export function isReadAsProduced({ request, fetched }: Pick<ForEngines, "request" | "fetched">): boolean {
  return request.stream || fetched?.asProduced === true;
}

export function engineRequestOf({ asked, room }: AttemptRequest, settings: AttemptsSettings): EngineRequest {
  const { model, request, inputTokens } = asked;
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  // An answer that is passed on is requested as the caller wants it: neither form can be made of the other.
  const stream = isReadAsProduced(asked) || (!request.passed && cap > settings.unstreamed_tokens_max);
  // An answer that is not streamed cannot be cut short, and its hold cannot grow.
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
