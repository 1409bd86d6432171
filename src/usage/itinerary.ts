/** Which routes a walk may still take, and which comes next. It asks nobody, and holds nothing of what was said. */
import { affinityKey } from "../routing/affinity.ts";
import { isFree, nextAfter, repeatAfter_ms } from "../routing/after.ts";
import type { RetryBudget } from "../routing/budget.ts";
import { contextTokensOf, type Route, refusalAt } from "../routing/catalog.ts";
import { fitting } from "../routing/choose.ts";
import type { Health } from "../routing/health.ts";
import type { Pool, Visit } from "../routing/pool.ts";
import type { AttemptEnd } from "../upstream/attempt.ts";
import type { Errand } from "./asking.ts";

export interface ItineraryParts {
  /** Of a model, by its public id. */
  budget(model: string): RetryBudget;
  health: Health;
  pool: Pool;
  now_ms(): number;
  /** A number from 0 to 1. */
  draw(): number;
}

/** `wait_ms`: how long until then. */
export interface Stage {
  route: Route;
  /** On a connection of its own. */
  isFresh: boolean;
  wait_ms: number;
}

export class Itinerary implements Visit {
  readonly #parts: ItineraryParts;
  readonly #errand: Errand;
  readonly #budget: RetryBudget;
  readonly tokens: number;
  /** Whether there was a choice. */
  readonly #hasPeers: boolean;
  #left: readonly Route[];
  #key: number | null | undefined;
  /** Whether another engine has been asked for already, by an attempt that waited for long. */
  #isSpareTaken = false;
  /** The last route may be asked once more. */
  #mayRepeat = true;

  constructor(parts: ItineraryParts, errand: Errand, tokens: number) {
    this.#parts = parts;
    this.#errand = errand;
    this.#budget = parts.budget(errand.model.id);
    this.tokens = tokens;
    const { model, request, inputTokens } = errand;
    const able = model.routes.filter((route) => refusalAt(route, request) === null);
    const needed = inputTokens + (request.outputTokens_max ?? 1);
    this.#left = fitting(able, needed, (route) => contextTokensOf(model, route));
    this.#hasPeers = this.#left.length > 1;
  }

  key(): number | null {
    if (this.#key === undefined) this.#key = affinityKey(this.#errand.affinity, this.#errand.request);
    return this.#key;
  }

  get hasSpare(): boolean {
    return this.#left.length > 0;
  }

  first(): Stage {
    this.#budget.offered(this.#parts.now_ms());
    const route = this.#choice();
    if (!route) throw new Error("a model without routes cannot be in the catalog");
    return { route, isFresh: false, wait_ms: 0 };
  }

  /** A request leaves for this route. The answer is to be called when it is over. */
  begun(route: Route, now_ms: number): () => void {
    const { health, pool } = this.#parts;
    this.#left = this.#left.filter((other) => other !== route);
    this.#isSpareTaken = false;
    health.begun(route, now_ms);
    pool.begun(route, this, this.#hasPeers, now_ms);
    return () => pool.ended(route, this);
  }

  /** Whether another may be asked in place of one that is slow; it is then counted. */
  takeSpare(): boolean {
    this.#isSpareTaken = this.#choice() !== null && this.#budget.take(this.#parts.now_ms());
    return this.#isSpareTaken;
  }

  /** What follows an attempt that showed nothing, or null. `rest_ms`: until the deadline of all attempts. */
  after(route: Route, end: AttemptEnd, rest_ms: number): Stage | null {
    const next = nextAfter[end.kind];
    if (next === "stop" || rest_ms <= 0) return null;
    if (next === "larger") this.#left = this.#largerThan(route);
    const stage = next === "same" ? { route, isFresh: true, wait_ms: 0 } : this.#other(route, end);
    if (!stage || stage.wait_ms >= rest_ms) return null;
    if (isFree.has(end.kind) || this.#isSpareTaken) return stage;
    return this.#budget.take(this.#parts.now_ms()) ? stage : null;
  }

  #other(route: Route, end: AttemptEnd): Stage | null {
    const other = this.#choice();
    if (other) return { route: other, isFresh: false, wait_ms: 0 };
    const wait_ms = this.#mayRepeat ? repeatAfter_ms(end, this.#parts.draw) : null;
    this.#mayRepeat = false;
    return wait_ms === null ? null : { route, isFresh: false, wait_ms };
  }

  #largerThan(route: Route): Route[] {
    const { model } = this.#errand;
    const context = contextTokensOf(model, route);
    return model.routes.filter((other) => contextTokensOf(model, other) > context);
  }

  #choice(): Route | null {
    const { health, pool, draw, now_ms } = this.#parts;
    return pool.choose(health.usable(this.#left, now_ms()), this, draw);
  }
}
