/**
 * Decides the order in which a request tries routes: which may still be tried, which is next, and the wait before it. It
 * sends nothing, and holds no part of an answer.
 */
import { Fault } from "../inference/fault.ts";
import { affinityKey } from "../routing/affinity.ts";
import { isFree, nextAfter, type RetryBudget, repeatAfter_ms } from "../routing/after.ts";
import { contextTokensOf, type Route, refusalAt } from "../routing/catalog.ts";
import { fitting, identityOf, isSame, type Pool, type Visit } from "../routing/choose.ts";
import type { Claim, Share } from "../routing/fair-queue.ts";
import type { Health } from "../routing/health.ts";
import type { Queues, Slot, Waiting } from "../routing/queues.ts";
import type { Replicas } from "../routing/replicas.ts";
import type { AttemptEnd } from "../upstream/attempt.ts";
import type { AttemptRequest } from "./record.ts";

export interface RouteOrderParts {
  /** The budget of retries of a model, by its public id. */
  budget(model: string): RetryBudget;
  replicas: Pick<Replicas, "routesOf" | "watch">;
  health: Health;
  pool: Pool;
  queues: Queues;
  /** The plan's weight and priority when requests wait for engines, by the plan's name. */
  shareOf(plan: string): Share;
  now_ms(): number;
  /** Returns a random number from 0 to 1. */
  draw(): number;
}

export interface Stage {
  /** The route to try; null: the best of the remaining routes. */
  route: Route | null;
  /** Whether the attempt uses a new connection. */
  isFresh: boolean;
  wait_ms: number;
}

export interface TakenSlot extends Slot {
  begun_ms: number;
}

export class RouteOrder implements Visit, Claim {
  readonly #parts: RouteOrderParts;
  readonly #attemptRequest: AttemptRequest;
  readonly #budget: RetryBudget;
  readonly organizationId: string;
  readonly tokens: number;
  readonly share: Share;
  /** Whether the first attempt could choose between several routes. */
  readonly #hasPeers: boolean;
  /** The routes of the model when they were last read. */
  #routes: readonly Route[];
  /** The routes that may still be tried. */
  #left: readonly Route[];
  #asked: Route[] = [];
  /** If above 0, only routes with a larger context are tried. */
  #contextTokens_over = 0;
  #key: number | null | undefined;
  /** Whether another engine was asked already because an attempt took long. */
  #isSpareTaken = false;
  #mayRepeat = true;
  #isOver = false;
  /** Ends the pause between two attempts. */
  #wake: (() => void) | null = null;

  constructor(parts: RouteOrderParts, attemptRequest: AttemptRequest, tokens: number) {
    this.#parts = parts;
    this.#attemptRequest = attemptRequest;
    this.#budget = parts.budget(attemptRequest.asked.model.id);
    this.organizationId = attemptRequest.asked.principal.organization.id;
    this.tokens = tokens;
    this.share = parts.shareOf(attemptRequest.asked.plan.name);
    this.#routes = parts.replicas.routesOf(attemptRequest.asked.model);
    this.#left = this.#able();
    this.#hasPeers = this.#left.length > 1;
  }

  key(): number | null {
    const { organizationId } = this;
    const { session, request } = this.#attemptRequest.asked;
    if (this.#key === undefined) this.#key = affinityKey({ organizationId, session }, request);
    return this.#key;
  }

  /**
   * The name by which engines know the conversation, from which the client's own name cannot be derived. Null if
   * nothing identifies the conversation.
   */
  session(): string | null {
    return this.key()?.toString(16) ?? null;
  }

  get hasSpare(): boolean {
    return this.#left.length > 0;
  }

  /** The first attempt. Throws `overloaded` if every engine is drained. */
  first(): Stage {
    this.#budget.offered(this.#parts.now_ms());
    if (this.#left.length === 0) throw drained();
    return { route: null, isFresh: false, wait_ms: 0 };
  }

  enter(stage: Stage): TakenSlot | null {
    const { pool, queues, draw } = this.#parts;
    const route = pool.choose(queues.open(this.#routesOf(stage), this), this, draw);
    return route && this.#begun(queues.enter(route, this));
  }

  /**
   * Waits for a slot; null if the request was given up. Throws `capacity_exceeded` if no more requests may wait, or
   * this request waited too long; `overloaded` if every engine is drained.
   */
  async queued(stage: Stage): Promise<TakenSlot | null> {
    const { queues, now_ms } = this.#parts;
    // During a long wait, only the parsed conversation is kept in memory, without the bytes that the caller sent.
    this.#attemptRequest.asked.own?.[Symbol.dispose]();
    await this.pause(Number.POSITIVE_INFINITY, this.#attemptRequest.granted);
    const until_ms = now_ms() + queues.patience_ms(this.#routesOf(stage));
    for (;;) {
      if (this.isGivenUp) return null;
      const slot = this.enter(stage);
      if (slot) return slot;
      const waiting = this.#wait(stage);
      await this.pause(until_ms - now_ms(), waiting.slot);
      waiting.giveUp();
      const freed = await waiting.slot;
      if (this.isGivenUp) {
        freed?.release();
        return null;
      }
      if (!freed && now_ms() >= until_ms) throw queues.full(this.#routesOf(stage), this);
      // The addresses may have changed during the wait: the loop tries the current ones.
      if (!freed) continue;
      if (this.#routesOf(stage).some((route) => isSame(route, freed.route))) return this.#begun(freed);
      // The slot's engine has become unhealthy meanwhile.
      freed.release();
    }
  }

  #wait(stage: Stage): Waiting {
    const { queues, replicas } = this.#parts;
    const routes = this.#routesOf(stage);
    if (routes.length === 0) throw drained();
    const waiting = queues.wait(routes, this);
    const unwatch = replicas.watch(() => waiting.renew(this.#routesOf(stage)));
    void waiting.slot.then(unwatch);
    return waiting;
  }

  /** Ends every wait: nobody wants the answer any more. */
  giveUp(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  get isGivenUp(): boolean {
    return this.#isOver || this.#attemptRequest.signal.aborted;
  }

  /** Resolves after `wait_ms`, at `event`, or when the request is given up, whichever comes first. */
  async pause(wait_ms: number, event?: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = wait_ms === Number.POSITIVE_INFINITY ? null : setTimeout(resolve, wait_ms);
    this.#wake = resolve;
    const listening = this.#attemptRequest.signal.listen(() => resolve());
    await (event ? Promise.race([promise, event]) : promise);
    if (timer) clearTimeout(timer);
    listening.stop();
    this.#wake = null;
  }

  #begun(slot: Slot): TakenSlot {
    const { health, pool } = this.#parts;
    const { route } = slot;
    const begun_ms = this.#parts.now_ms();
    this.#left = this.#left.filter((other) => !isSame(other, route));
    this.#asked.push(route);
    this.#isSpareTaken = false;
    health.begun(route, begun_ms);
    pool.begun(route, this, this.#hasPeers, begun_ms);
    const release = () => {
      pool.ended(route, this);
      slot.release();
    };
    return { route, begun_ms, release };
  }

  #routesOf({ route }: Stage): readonly Route[] {
    this.#renew();
    const { health, now_ms } = this.#parts;
    if (route && (this.#left.length === 0 || this.#routes.some((one) => isSame(one, route)))) return [route];
    return health.usable(this.#left, now_ms());
  }

  /**
   * Reads the routes again, because names may resolve to other addresses by now: addresses that are gone are not tried,
   * and new ones may be.
   */
  #renew(): void {
    const routes = this.#parts.replicas.routesOf(this.#attemptRequest.asked.model);
    if (routes === this.#routes) return;
    this.#routes = routes;
    const asked = new Set(this.#asked.map(identityOf));
    this.#left = this.#able().filter((route) => !asked.has(identityOf(route)));
  }

  /** The routes whose protocol can express the request, and whose context is large enough for it. */
  #able(): readonly Route[] {
    const { asked, except } = this.#attemptRequest;
    const { model, request, codecOf } = asked;
    const inputTokens = request.passed?.largestTokens ?? asked.inputTokens;
    const contextOf = (route: Route) => contextTokensOf(model, route);
    const routes = except === undefined ? this.#routes : this.#routes.filter((route) => goesOn(route, except));
    if (this.#contextTokens_over > 0) return routes.filter((route) => contextOf(route) > this.#contextTokens_over);
    const able = routes.filter((route) => refusalAt(route, request, codecOf) === null);
    return fitting(able, inputTokens + (request.outputTokens_max ?? 1), contextOf);
  }

  /**
   * Whether another route may be asked because the current one is slow. If so, counts the additional attempt against
   * the retry budget.
   */
  takeSpare(): boolean {
    const { health, queues, now_ms } = this.#parts;
    this.#renew();
    const isOpen = queues.open(health.usable(this.#left, now_ms()), this).length > 0;
    this.#isSpareTaken = isOpen && this.#budget.take(now_ms());
    return this.#isSpareTaken;
  }

  /**
   * The next attempt after one that delivered nothing; null: there is none. `rest_ms`: the time until the deadline of
   * all attempts.
   */
  after(route: Route, end: AttemptEnd, rest_ms: number): Stage | null {
    const next = nextAfter[end.kind];
    if (next === "stop" || rest_ms <= 0) return null;
    if (next === "larger") this.#seekLarger(route);
    const stage = next === "same" ? { route, isFresh: true, wait_ms: 0 } : this.#other(route, end);
    if (!stage || stage.wait_ms >= rest_ms) return null;
    if (isFree.has(end.kind) || this.#isSpareTaken) return stage;
    return this.#budget.take(this.#parts.now_ms()) ? stage : null;
  }

  #other(route: Route, end: AttemptEnd): Stage | null {
    this.#renew();
    if (this.#left.length > 0) return { route: null, isFresh: false, wait_ms: 0 };
    const wait_ms = this.#mayRepeat ? repeatAfter_ms(end, this.#parts.draw) : null;
    this.#mayRepeat = false;
    return wait_ms === null ? null : { route, isFresh: false, wait_ms };
  }

  /**
   * Allows only routes with a larger context from now on, also those that were tried before and failed for another
   * reason.
   */
  #seekLarger(route: Route): void {
    this.#contextTokens_over = contextTokensOf(this.#attemptRequest.asked.model, route);
    this.#asked = [];
    this.#left = this.#able();
  }
}

/** Whether this engine can continue an answer in the middle of which the engines of `failed` have failed. */
function goesOn(route: Route, failed: readonly Route[]): boolean {
  return route.continues === true && !failed.some((one) => isSame(route, one));
}

function drained(): Fault {
  return new Fault("overloaded", "The engines of this model are out of service for a while. Please try again later.", {
    retryAfterSeconds: 30,
  });
}
