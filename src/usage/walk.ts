/**
 * USAGE, the walk: from route to route until the first part of an answer, never after. What an attempt that shows nothing
 * has said is dropped before it is counted; the hold, the lease and the record stay one. docs/routing.md.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { asFault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { ResponseIdentity } from "../protocol/codec.ts";
import { type Failure, isFree, nextAfter, toldFault } from "../routing/after.ts";
import type { RetryBudget } from "../routing/budget.ts";
import { type CatalogModel, contextTokensOf, type Route, refusalAt, timeoutsOf } from "../routing/catalog.ts";
import { affinity, choose, fitting } from "../routing/choose.ts";
import type { Health } from "../routing/health.ts";
import { ask, type Patience } from "../upstream/ask.ts";
import type { AttemptEnd } from "../upstream/attempt.ts";
import { upstreamCodecs } from "../upstream/codecs.ts";
import type { Client } from "../upstream/http1/client.ts";
import { leeway_ms } from "../upstream/target.ts";
import type { Opened, OpenedEvents } from "./opened.ts";

type Batch = InferenceEvent[];
type Next = IteratorResult<Batch, void>;

/** What is asked of engines. */
export interface Errand {
  model: CatalogModel;
  request: InferenceRequest;
  /** Estimate of the input. */
  inputTokens: number;
  identity: ResponseIdentity;
  /** Output tokens that an answer may have: by the model and its context, and by what is held so far. */
  room: { allowed: number; held: number };
  signal: AbortSignal;
}

export interface WalkParts {
  client: Client;
  /** Of a model, by its public id. */
  budget(model: string): RetryBudget;
  health: Health;
  now_ms(): number;
  /** A number from 0 to 1. */
  draw(): number;
  attempted(attempt: Attempted): void;
  settings(): WalkSettings;
}

export interface WalkSettings {
  /** Up to this cap an answer that nobody streams is asked for whole. */
  unstreamed_tokens_max: number;
}

/** One attempt, when it is over. */
export interface Attempted {
  /** Public model id. */
  model: string;
  route: Route;
  end: AttemptEnd;
  ms: number;
}

/** Nothing is sent before the first event is asked for. */
export function walk(parts: WalkParts, errand: Errand): Opened {
  return new Walk(parts, errand);
}

class Walk implements Opened, OpenedEvents {
  readonly #parts: WalkParts;
  readonly #errand: Errand;
  readonly #asking: Asking;
  readonly #budget: RetryBudget;
  readonly #started_ms: number;
  #left: readonly Route[];
  #failures: Failure[] = [];
  #route: Route | null = null;
  #attempts = 0;
  /** Of the attempt under way. */
  #begun_ms = 0;
  #attempt: AsyncGenerator<Batch, void, void> | null = null;
  #end: AttemptEnd | null = null;
  #isShown = false;
  #isOver = false;
  /** Whether another engine has been asked for already, by an attempt that waited for long. */
  #isSpareTaken = false;

  constructor(parts: WalkParts, errand: Errand) {
    this.#parts = parts;
    this.#errand = errand;
    this.#asking = askingOf(errand, parts.settings());
    this.#budget = parts.budget(errand.model.id);
    this.#started_ms = parts.now_ms();
    const able = errand.model.routes.filter((route) => refusalAt(route, errand.request) === null);
    const tokens = errand.inputTokens + (errand.request.outputTokens_max ?? 1);
    this.#left = fitting(able, tokens, (route) => contextTokensOf(errand.model, route));
  }

  get events(): OpenedEvents {
    return this;
  }

  get route(): Route | null {
    return this.#route;
  }

  get attempts(): number {
    return this.#attempts;
  }

  get windowTokens(): number | null {
    return this.#asking.windowTokens;
  }

  [Symbol.asyncIterator](): OpenedEvents {
    return this;
  }

  next(): Promise<Next> {
    return this.#isShown ? this.#attempt!.next() : this.#toFirstPart();
  }

  async return(): Promise<Next> {
    this.#isOver = true;
    await this.#attempt?.return();
    return { done: true, value: undefined };
  }

  async #toFirstPart(): Promise<Next> {
    if (this.#isOver) return { done: true, value: undefined };
    if (this.#attempts === 0) this.#budget.offered(this.#parts.now_ms());
    let route = this.#chosen();
    for (let isFresh = false; ; ) {
      const batch = await this.#asked(route, isFresh);
      const end = this.#end;
      if (this.#isShown || end === null) return { done: false, value: batch };
      this.#parts.health.ended(route, end, this.#begun_ms, this.#parts.now_ms());
      const next = this.#following(route, end, batch);
      if (next === null) {
        this.#isShown = true;
        return { done: false, value: this.#told(batch) };
      }
      isFresh = next === route;
      route = next;
    }
  }

  /** What one engine says up to its first part, or all of it where there is none. */
  async #asked(route: Route, isFresh: boolean): Promise<Batch> {
    const { parts, errand } = { parts: this.#parts, errand: this.#errand };
    this.#route = route;
    this.#attempts += 1;
    this.#end = null;
    this.#left = this.#left.filter((other) => other !== route);
    this.#isSpareTaken = false;
    this.#begun_ms = parts.now_ms();
    parts.health.begun(route, this.#begun_ms);
    this.#attempt = ask({
      ...{ client: parts.client, upstream: route.upstream, codec: upstreamCodecs[route.upstream.protocol] },
      ...{ identity: errand.identity, signal: errand.signal, isFresh, stream: this.#asking.stream },
      ...this.#asking.at(route),
      patience: this.#patience(route),
      ended: (end) => this.#ended(route, end),
    });
    const held: Batch = [];
    for (;;) {
      const { done, value } = await this.#attempt.next();
      if (done) throw new Error("an attempt ended without an end");
      held.push(...value);
      if (this.#end !== null) return held;
      if (held.some((event) => event.type === "part-start")) {
        this.#isShown = true;
        // An engine that has begun to answer is well, however long the answer is.
        parts.health.ended(route, { kind: "answered" }, this.#begun_ms, parts.now_ms());
        return held;
      }
    }
  }

  #ended(route: Route, end: AttemptEnd): void {
    this.#end = end;
    const { now_ms, health, attempted } = this.#parts;
    attempted({ model: this.#errand.model.id, route, end, ms: now_ms() - this.#begun_ms });
    if (this.#isShown || this.#isOver) health.ended(route, end, this.#begun_ms, now_ms());
  }

  /** The route that is asked next, or null. */
  #following(route: Route, end: AttemptEnd, batch: Batch): Route | null {
    const errand = this.#errand;
    const last = batch.at(-1);
    const isEmpty = end.kind === "answered" && isEmptyAnswer(batch);
    if (last?.type === "response-failed") this.#failures.push({ kind: end.kind, fault: last.fault });
    const next = isEmpty ? "other" : nextAfter[end.kind];
    if (next === "stop" || this.#isOver || errand.signal.aborted) return null;
    if (next === "larger") {
      const context = contextTokensOf(errand.model, route);
      this.#left = errand.model.routes.filter((other) => contextTokensOf(errand.model, other) > context);
    }
    if (this.#rest_ms(route) <= 0) return null;
    const chosen = next === "same" ? route : this.#choice();
    if (!chosen || isFree.has(end.kind) || this.#isSpareTaken) return chosen;
    return this.#budget.take(this.#parts.now_ms()) ? chosen : null;
  }

  #chosen(): Route {
    const route = this.#choice();
    if (!route) throw new Error("a model without routes cannot be in the catalog");
    return route;
  }

  #choice(): Route | null {
    const { cacheKey } = this.#errand.request;
    const usable = this.#parts.health.usable(this.#left, this.#parts.now_ms());
    return choose(usable, cacheKey === undefined ? this.#parts.draw() : affinity(cacheKey));
  }

  #rest_ms(route: Route): number {
    return timeoutsOf(route).total_ms - (this.#parts.now_ms() - this.#started_ms);
  }

  #patience(route: Route): Patience {
    const { connect_ms, first_part_ms, first_part_spare_ms, idle_ms } = timeoutsOf(route);
    const more_ms = leeway_ms(this.#errand.inputTokens, this.#asking.wholeTokens);
    const isAsked = () => {
      this.#isSpareTaken = this.#choice() !== null && this.#budget.take(this.#parts.now_ms());
      return this.#isSpareTaken;
    };
    const isSpared = first_part_spare_ms < first_part_ms && this.#left.length > 0;
    return {
      ...{ connect_ms, idle_ms, first_part_ms: first_part_ms + more_ms, total_ms: Math.max(0, this.#rest_ms(route)) },
      spare: isSpared ? { after_ms: first_part_spare_ms + more_ms, isAsked } : null,
    };
  }

  /** The last failure, in the words that all of them make together. */
  #told(batch: Batch): Batch {
    const last = batch.at(-1);
    if (last?.type !== "response-failed") return batch;
    const fault = this.#errand.signal.aborted ? asFault(this.#errand.signal.reason) : toldFault(this.#failures);
    return [...batch.slice(0, -1), { ...last, fault }];
  }
}

/** An answer that was ended by a limit or a filter is no empty one. */
function isEmptyAnswer(batch: Batch): boolean {
  const last = batch.at(-1);
  return last?.type === "response-end" && last.reason === "stop" && !batch.some((event) => event.type === "part-start");
}

interface Asking {
  stream: boolean;
  /** Set where a usage window alone is why the engine may not write more than so many tokens. */
  windowTokens: number | null;
  /** Of an answer that comes whole: how many it may have. */
  wholeTokens: number;
  at(route: Route): {
    model: string;
    request: InferenceRequest;
    outputTokens_max: number;
    instructionsInside?: boolean;
  };
}

function askingOf({ model, request, inputTokens, room }: Errand, settings: WalkSettings): Asking {
  const cap = Math.min(request.outputTokens_max ?? room.allowed, room.allowed);
  const stream = request.stream || cap > settings.unstreamed_tokens_max;
  // An answer that comes whole cannot be ended on its way, nor its hold grow.
  const windowTokens = !stream && room.held < cap ? room.held : null;
  // A cap above what is allowed is lowered: the answer then ends with `length`.
  const isCapped = request.outputTokens_max !== undefined || windowTokens !== null;
  return {
    stream,
    windowTokens,
    wholeTokens: stream ? 0 : (windowTokens ?? cap),
    at(route) {
      const context = contextTokensOf(model, route);
      const most = context < model.contextTokens ? Math.max(1, context - inputTokens) : Number.POSITIVE_INFINITY;
      return {
        model: route.model,
        request: isCapped ? { ...request, outputTokens_max: Math.min(most, windowTokens ?? cap) } : request,
        outputTokens_max: Math.min(most, room.allowed),
        ...(route.instructionsInside === undefined ? {} : { instructionsInside: route.instructionsInside }),
      };
    },
  };
}
