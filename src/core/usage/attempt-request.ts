/**
 * The request as it is sent to engines. It is the same for all of them, except for fields that an engine does not allow
 * or has refused.
 */
import { outputTokensAllowed } from "../admission/allowance.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { saltOf } from "../routing/affinity.ts";
import { codecAt, contextTokensOf, type Route, smallestCapAt, timeoutsOf } from "../routing/catalog.ts";
import type { EngineQuestion, Patience } from "../upstream/ask.ts";
import { silences, type Upstream } from "../upstream/target.ts";
import type { AttemptRequest, RunRequest } from "./record.ts";

export interface AttemptsSettings {
  /**
   * If the cap on output is at most this, an answer that the caller does not stream is not streamed by the engine
   * either. Above this cap, a fast engine may still be asked for the answer without streaming (whole-answers.ts),
   * unless this is 0.
   */
  unstreamed_tokens_max: number;
}

export interface EngineRequest {
  stream: boolean;
  /**
   * The request's cap on output tokens, if the answer may be requested without streaming from an engine that will
   * finish it soon, although the cap is above `unstreamed_tokens_max`; else null.
   */
  quickTokens: number | null;
  /** How long parts are gathered before they are read; 0 if a caller reads them as they arrive. */
  gather_ms: number;
  /** The output tokens that a usage window still pays for, if those are fewer than the request's own cap; else null. */
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

/**
 * The most output tokens that count as load. Caps on output are far above the length of real answers, and would hide
 * the differences between inputs.
 */
const answer_tokens = 1024;

/**
 * How long the parts of an answer that is not streamed to its caller are gathered: docs/design/usage.md, Answers that
 * aren't streamed.
 */
const unstreamed_gather_ms = 100;

/** Whether the caller may have read a part of the answer before its end, so that the answer cannot begin again. */
export function isReadAsProduced({ request, fetched }: Pick<RunRequest, "request" | "fetched">): boolean {
  return request.stream || fetched?.asProduced === true;
}

/** Whether the first part of an answer is delivered at once. */
export function isShownAtOnce(asked: Pick<RunRequest, "request" | "fetched">): boolean {
  return isReadAsProduced(asked) || asked.request.passed !== undefined;
}

/**
 * Makes the parameters of a call to an engine that depend only on the request and the route. `session`: returns the
 * name by which engines know the conversation.
 */
export function questionOf(
  engineRequest: EngineRequest,
  { asked }: AttemptRequest,
  route: Route,
  session: () => string | null,
) {
  const { upstream } = route;
  const organization = asked.principal.organization.id;
  const isSalted = upstream.isCacheSalted && asked.request.passed?.makesText !== false;
  return {
    ...engineRequest.at(route),
    upstream,
    codec: codecAt(route, asked.codecOf),
    identity: asked.identity,
    inputBytes: asked.inputBytes,
    own: asked.own ?? null,
    betas: asked.betas ?? null,
    gather_ms: engineRequest.gather_ms,
    identified: { organization, plan: asked.plan.name, session: upstream.identityHeaders?.session ? session() : null },
    cacheSalt: isSalted ? saltOf(organization) : null,
    hold: (bytes) => asked.holdAnswer?.(bytes),
  } satisfies Partial<EngineQuestion>;
}

/**
 * How long an attempt may take. `more_ms`: the additional time for the first part, because the request is large.
 * `take`: called if the first part is late; returns whether another engine gets the request instead. Null if there is no
 * other engine.
 */
export function patienceOf(
  route: Route,
  { more_ms, rest_ms, hasTools }: { more_ms: number; rest_ms: number; hasTools: boolean },
  take: (() => boolean) | null,
): Patience {
  const timeouts = timeoutsOf(route);
  const { connect_ms, first_part_ms, first_part_spare_ms } = timeouts;
  const isSpared = take !== null && first_part_spare_ms < first_part_ms;
  return {
    connect_ms,
    ...silences(timeouts, hasTools),
    first_part_ms: first_part_ms + more_ms,
    total_ms: Math.max(0, rest_ms),
    spare: isSpared ? { after_ms: first_part_spare_ms + more_ms, take } : null,
  };
}

export function engineRequestOf({ asked, room }: AttemptRequest, settings: AttemptsSettings): EngineRequest {
  const { model, request, inputTokens } = asked;
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  // For an operation whose answer is passed on untranslated, the engine is asked to stream exactly if the caller
  // streams: neither form can be made of the other.
  const stream = isReadAsProduced(asked) || (!request.passed && cap > settings.unstreamed_tokens_max);
  // An answer that is not streamed cannot be cut short, and its hold cannot grow.
  const windowTokens = !stream && room.held < cap ? room.held : null;
  // If the request's cap is above what is allowed, the cap is lowered: the answer then ends with `length`.
  const isCapped = request.outputTokens_max !== undefined || windowTokens !== null;
  // If the request has no cap, none is sent to the engine, so nothing bounds the time of an answer without streaming.
  const isBounded = request.outputTokens_max !== undefined && settings.unstreamed_tokens_max > 0;
  const isQuick = stream && isBounded && !isReadAsProduced(asked) && !asked.fetched && room.isSlight === true;
  return {
    stream,
    quickTokens: isQuick ? cap : null,
    gather_ms: request.stream || request.passed ? 0 : unstreamed_gather_ms,
    windowTokens,
    wholeTokens: stream ? 0 : (windowTokens ?? cap),
    busyTokens: inputTokens + Math.min(cap, answer_tokens),
    at(route) {
      const context = contextTokensOf(model, route);
      const largest = request.passed?.largestTokens ?? inputTokens;
      const most =
        context < model.contextTokens
          ? outputTokensAllowed({ ...model, contextTokens: context }, largest)
          : Number.POSITIVE_INFINITY;
      const own = Math.max(asked.outputTokensAsked ?? cap, smallestCapAt(route));
      const lowered = Math.min(most, own, windowTokens ?? cap);
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

const remembered_ms = 3_600_000;

/**
 * Remembers for an hour which routes refused a field that is not essential, so that the field is not sent to them
 * again.
 */
export class LesserDialects {
  /**
   * The learned dialects. The key is the upstream; the key of the inner map is the engine's name for the model. A
   * reload makes new upstreams, which drops all of these dialects.
   */
  readonly #found = new WeakMap<Upstream, Map<string, { dialect: Dialect; until_ms: number }>>();

  learned({ upstream, model }: Pick<Route, "upstream" | "model">, dialect: Dialect, now_ms: number): void {
    const models = this.#found.get(upstream) ?? new Map<string, { dialect: Dialect; until_ms: number }>();
    models.set(model, { dialect, until_ms: now_ms + remembered_ms });
    this.#found.set(upstream, models);
  }

  /** The dialect of requests to this route; undefined for the generic dialect. */
  of({ upstream, model }: Pick<Route, "upstream" | "model">, now_ms: number): Dialect | undefined {
    const found = this.#found.get(upstream)?.get(model);
    return found && now_ms < found.until_ms ? found.dialect : upstream.dialect;
  }
}
