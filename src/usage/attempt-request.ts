/** What is asked of engines for one request: the same of all, but for what the context of each allows. Pure. */

import type { OwnBytes } from "../body/own-bytes.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { ResponseIdentity } from "../protocol/codec.ts";
import type { Affinity } from "../routing/affinity.ts";
import { type CatalogModel, contextTokensOf, type Route } from "../routing/catalog.ts";
import type { Signals } from "./departure.ts";
import type { RunTrace } from "./trace.ts";

/** What is asked of engines. */
export interface AttemptRequest extends Signals {
  model: CatalogModel;
  request: InferenceRequest;
  /** Size of what the caller asked. */
  inputBytes: number;
  /** The bytes in which it did, for the first engine. */
  own?: OwnBytes | null;
  /** Estimate of the input. */
  inputTokens: number;
  identity: ResponseIdentity;
  /** Output tokens that an answer may have: by the model and its context, and by what is held so far. */
  room: { allowed: number; held: number };
  /** Hears how much of the answer is held; throws the Fault that then ends the request. */
  holdAnswer?: ((bytes: number) => void) | undefined;
  /** Resolves when the ledger has decided: nothing waits for an engine before. */
  granted: Promise<void>;
  /** Under which it was admitted. */
  plan: { readonly name: string };
  /** What its session is known by. */
  affinity: Affinity;
  /** Follows each attempt, where the run is traced. */
  trace?: RunTrace | null;
}

export interface AttemptsSettings {
  /** Up to this cap an answer that nobody streams is asked for whole. */
  unstreamed_tokens_max: number;
}

export interface EngineRequest {
  stream: boolean;
  /** How long parts may wait for more of them: 0 where a caller reads them as they come. */
  gather_ms: number;
  /** Set where a usage window alone is why the engine may not write more than so many tokens. */
  windowTokens: number | null;
  /** Of an answer that comes whole: how many it may have. */
  wholeTokens: number;
  /** What the request is to an engine that works at it: its input, and what an answer usually has. */
  busyTokens: number;
  at(route: Route): {
    model: string;
    request: InferenceRequest;
    outputTokens_max: number;
    instructionsInside?: boolean;
  };
}

/** Caps are far above what answers have: counted in full, they would hide the inputs. */
const answer_tokens = 1024;

/** docs/design/usage.md, Answers that nobody streams. */
const unstreamed_gather_ms = 100;

export function engineRequestOf(
  { model, request, inputTokens, room }: AttemptRequest,
  settings: AttemptsSettings,
): EngineRequest {
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  const stream = request.stream || cap > settings.unstreamed_tokens_max;
  // An answer that comes whole cannot be ended on its way, nor its hold grow.
  const windowTokens = !stream && room.held < cap ? room.held : null;
  // A cap above what is allowed is lowered: the answer then ends with `length`.
  const isCapped = request.outputTokens_max !== undefined || windowTokens !== null;
  return {
    stream,
    gather_ms: request.stream ? 0 : unstreamed_gather_ms,
    windowTokens,
    wholeTokens: stream ? 0 : (windowTokens ?? cap),
    busyTokens: inputTokens + Math.min(cap, answer_tokens),
    at(route) {
      const context = contextTokensOf(model, route);
      const most = context < model.contextTokens ? Math.max(1, context - inputTokens) : Number.POSITIVE_INFINITY;
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
