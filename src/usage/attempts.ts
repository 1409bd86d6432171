/**
 * USAGE, the attempts: from route to route until something of an answer is shown, never after: of a stream its first part, of
 * what nobody streams its end. What an attempt that shows nothing has said is dropped before it is counted, or is void
 * where the answer begins anew; the hold, the lease and the record stay one. docs/routing.md, When another is asked.
 */
import type { InferenceEvent } from "../inference/event.ts";
import { asFault, Fault } from "../inference/fault.ts";
import { saltOf } from "../routing/affinity.ts";
import { combinedFault, type Failure } from "../routing/after.ts";
import { type Route, timeoutsOf } from "../routing/catalog.ts";
import type { Clock } from "../time/clock.ts";
import { ask, type Patience } from "../upstream/ask.ts";
import type { AttemptEnd } from "../upstream/attempt.ts";
import { upstreamCodecs } from "../upstream/codecs.ts";
import type { Client } from "../upstream/http1/client.ts";
import { leeway_ms } from "../upstream/target.ts";
import { type AttemptRequest, type AttemptsSettings, type EngineRequest, engineRequestOf } from "./attempt-request.ts";
import { type Finishing, finishing } from "./departure.ts";
import type { Opened, OpenedEvents, Tried } from "./opened.ts";
import { RouteOrder, type RouteOrderParts, type Stage, type TakenSlot } from "./route-order.ts";

type Batch = InferenceEvent[];
type Next = IteratorResult<Batch, void>;

export interface AttemptsParts extends RouteOrderParts {
  client: Client;
  attempted(attempt: Attempted): void;
  waited(wait: Waited): void;
  /** All that this process was late until now (time/lateness.ts). */
  late_ms(): number;
  /** A route has begun to answer, so long after it was asked. */
  firstPart(route: Route, ms: number): void;
  settings(): AttemptsSettings;
  clock: Pick<Clock, "after">;
}

/** One attempt, when it is over. */
export interface Attempted {
  /** Public model id. */
  model: string;
  route: Route;
  end: AttemptEnd;
  ms: number;
}

/** One wait for room, when it is over. `full`: it was refused, or took too long. */
export interface Waited {
  /** Public model id. */
  model: string;
  outcome: "served" | "left" | "full";
  ms: number;
}

/** Nothing is sent before the first event is asked for. */
export class Attempts implements Opened, OpenedEvents {
  readonly #parts: AttemptsParts;
  readonly #attemptRequest: AttemptRequest;
  readonly #engineRequest: EngineRequest;
  readonly #order: RouteOrder;
  readonly #started_ms: number;
  #failures: Failure[] = [];
  #route: Route | null = null;
  #attempts = 0;
  readonly tried: Tried[] = [];
  #queued_ms = 0;
  /** Of the attempt under way. */
  #begun_ms = 0;
  #lateBefore_ms = 0;
  #attempt: AsyncGenerator<Batch, void, void> | null = null;
  #end: AttemptEnd | null = null;
  #isAtEngine = false;
  /** Whether the first part of the attempt under way has come. */
  #isBegun = false;
  #isFinal = false;
  #isOver = false;
  /** The next attempt; undefined before the first. */
  #stage: Stage | null | undefined;
  /** Ends a pause between two attempts. */
  #wake: (() => void) | null = null;

  constructor(parts: AttemptsParts, attemptRequest: AttemptRequest) {
    this.#parts = parts;
    this.#attemptRequest = attemptRequest;
    this.#engineRequest = engineRequestOf(attemptRequest, parts.settings());
    this.#order = new RouteOrder(parts, attemptRequest, this.#engineRequest.busyTokens);
    this.#started_ms = parts.now_ms();
  }

  get events(): OpenedEvents {
    return this;
  }

  get route(): Route | null {
    return this.#route;
  }

  get isAtEngine(): boolean {
    return this.#isAtEngine;
  }

  get isFinal(): boolean {
    return this.#isFinal;
  }

  get queued_ms(): number {
    return this.#queued_ms;
  }

  get attempts(): number {
    return this.#attempts;
  }

  get windowTokens(): number | null {
    return this.#engineRequest.windowTokens;
  }

  [Symbol.asyncIterator](): OpenedEvents {
    return this;
  }

  next(): Promise<Next> {
    if (this.#isFinal) return this.#attempt?.next() ?? Promise.resolve({ done: true, value: undefined });
    return this.#isBegun ? this.#unseen() : this.#toFirstPart();
  }

  async return(): Promise<Next> {
    this.#isOver = true;
    this.#wake?.();
    await this.#attempt?.return();
    return { done: true, value: undefined };
  }

  async #toFirstPart(): Promise<Next> {
    let told: Batch = [];
    if (this.#stage === undefined) this.#stage = this.#order.first();
    while (this.#stage !== null) {
      const stage: Stage = this.#stage;
      const slot: TakenSlot | null = await this.#entered(stage);
      if (!slot) break;
      const { route } = slot;
      told = await this.#asked(slot, stage.isFresh);
      const end = this.#end;
      if (this.#isBegun || end === null) return { done: false, value: told };
      const kind = end.kind === "answered" && isEmptyAnswer(told) ? "empty" : end.kind;
      const judged = kind === end.kind ? end : { ...end, kind };
      if (kind === "answered") this.#wasShown(route);
      else this.#parts.health.ended(route, judged, this.#begun_ms, this.#parts.now_ms());
      this.#stage = this.#following(route, judged, told);
    }
    this.#isBegun = true;
    this.#isFinal = true;
    if (this.#isOver) return { done: true, value: undefined };
    return { done: false, value: this.#told(told) };
  }

  /** More of an answer of which nobody has seen anything: if its engine fails, another may begin it anew. */
  async #unseen(): Promise<Next> {
    const next: Next = await this.#attempt!.next();
    const end = this.#end;
    if (next.done || end === null || end.kind === "answered") return next;
    this.#stage = this.#following(this.#route!, end, next.value);
    if (this.#stage === null) {
      this.#isFinal = true;
      return { done: false, value: this.#told(next.value) };
    }
    this.#isBegun = false;
    return { done: false, value: [{ type: "response-start", ...this.#attemptRequest.identity }] };
  }

  /** At an engine that has room, as soon as there is one. Null: nobody waits any more, or it took too long. */
  async #entered(stage: Stage): Promise<TakenSlot | null> {
    this.#isAtEngine = false;
    if (stage.wait_ms > 0) await this.#pause(stage.wait_ms);
    if (this.#isGivenUp()) return null;
    const slot = this.#order.enter(stage);
    if (slot) return slot;
    const began_ms = this.#parts.now_ms();
    const found = await this.#queued(stage).catch((fault: unknown) => asFault(fault));
    const outcome = found instanceof Fault ? "full" : found === null ? "left" : "served";
    if (found instanceof Fault) this.#failures.push({ kind: "busy", fault: found });
    const ms = this.#parts.now_ms() - began_ms;
    this.#queued_ms += ms;
    this.#parts.waited({ model: this.#attemptRequest.model.id, outcome, ms });
    return found instanceof Fault ? null : found;
  }

  /** Throws `capacity_exceeded`. */
  async #queued(stage: Stage): Promise<TakenSlot | null> {
    const order = this.#order;
    // Whoever waits long holds the conversation alone.
    this.#attemptRequest.own?.letGo();
    await this.#pause(Number.POSITIVE_INFINITY, this.#attemptRequest.granted);
    const until_ms = this.#parts.now_ms() + order.patience_ms(stage);
    for (;;) {
      if (this.#isGivenUp()) return null;
      const slot = order.enter(stage);
      if (slot) return slot;
      const waiting = order.wait(stage);
      await this.#pause(until_ms - this.#parts.now_ms(), waiting.slot);
      waiting.giveUp();
      const freed = await waiting.slot;
      if (this.#isGivenUp()) {
        freed?.release();
        return null;
      }
      if (!freed && this.#parts.now_ms() >= until_ms) throw order.full(stage);
      // Other engines are there by now.
      if (!freed) continue;
      const arrived = order.arrived(freed, stage);
      if (arrived) return arrived;
    }
  }

  /** What one engine says up to its first part, or all of it where there is none. */
  async #asked({ route, begun_ms, release }: TakenSlot, isFresh: boolean): Promise<Batch> {
    const attemptRequest = this.#attemptRequest;
    const { upstream } = route;
    const finish = this.#engineRequest.stream ? null : this.#finishing(route);
    this.#route = route;
    this.#attempts += 1;
    this.#isAtEngine = true;
    this.#end = null;
    this.#begun_ms = begun_ms;
    this.#lateBefore_ms = this.#parts.late_ms();
    const traced = attemptRequest.trace?.attempt(upstream, route.model);
    this.#attempt = ask({
      ...this.#engineRequest.at(route),
      client: this.#parts.client,
      upstream,
      codec: upstreamCodecs[upstream.protocol],
      identity: attemptRequest.identity,
      signal: finish?.signal ?? attemptRequest.signal,
      inputBytes: attemptRequest.inputBytes,
      own: attemptRequest.own ?? null,
      isFresh,
      stream: this.#engineRequest.stream,
      gather_ms: this.#engineRequest.gather_ms,
      identified: { organization: attemptRequest.affinity.organizationId, plan: attemptRequest.plan.name },
      traceHeaders: traced?.headers ?? null,
      cacheSalt: upstream.isCacheSalted ? saltOf(attemptRequest.affinity.organizationId) : null,
      patience: this.#patience(route),
      hold: (bytes) => attemptRequest.holdAnswer?.(bytes),
      ended: (end) => {
        release();
        finish?.stop();
        traced?.ended(end.kind, end.status);
        this.#ended(route, end);
      },
    });
    const held: Batch = [];
    for (;;) {
      const { done, value } = await this.#attempt.next();
      if (done) throw new Error("an attempt ended without an end");
      held.push(...value);
      if (this.#end !== null) return held;
      if (held.some(isPartStart)) {
        this.#isBegun = true;
        this.#isFinal = attemptRequest.request.stream || !this.#order.hasSpare;
        this.#wasShown(route);
        return held;
      }
    }
  }

  /** An engine that has begun to answer is well, however long the answer is; unless its peers begin far sooner. */
  #wasShown(route: Route): void {
    const { health, now_ms, late_ms, firstPart, replicas } = this.#parts;
    const ms = now_ms() - this.#begun_ms;
    firstPart(route, ms);
    const taken_ms = Math.max(0, ms - this.#leeway_ms() - (late_ms() - this.#lateBefore_ms));
    health.shown(route, replicas.routesOf(this.#attemptRequest.model), taken_ms, this.#begun_ms, now_ms());
  }

  #ended(route: Route, end: AttemptEnd): void {
    this.#end = end;
    const { now_ms, health, attempted } = this.#parts;
    const ms = now_ms() - this.#begun_ms;
    const { name: upstream, address: replica } = route.upstream;
    const told = { outcome: end.kind, ms: Math.round(ms) };
    this.tried.push(replica ? { upstream, replica, ...told } : { upstream, ...told });
    attempted({ model: this.#attemptRequest.model.id, route, end, ms });
    // Its beginning has been told: only what went wrong since is news.
    const isNews = end.kind !== "answered" || !this.#isBegun;
    if (isNews && (this.#isBegun || this.#isOver)) health.ended(route, end, this.#begun_ms, now_ms());
  }

  /** What comes next, or null. */
  #following(route: Route, end: AttemptEnd, batch: Batch): Stage | null {
    const last = batch.at(-1);
    if (last?.type === "response-failed") this.#failures.push({ kind: end.kind, fault: last.fault });
    if (end.kind !== "answered" && end.kind !== "abandoned") this.#isAtEngine = false;
    return this.#isGivenUp() ? null : this.#order.after(route, end, this.#rest_ms(route));
  }

  /** An answer that comes whole is let finish where its caller leaves, unless its engine is ill. */
  #finishing(route: Route): Finishing {
    const { clock, health, now_ms } = this.#parts;
    return finishing(this.#attemptRequest, clock, () => {
      const state = health.stateOf(route, now_ms());
      return state !== "open" && state !== "down";
    });
  }

  #isGivenUp(): boolean {
    return this.#isOver || this.#attemptRequest.signal.aborted;
  }

  /** Until so much time has passed, something has happened, or nobody waits any more. */
  async #pause(wait_ms: number, event?: Promise<unknown>): Promise<void> {
    const { signal } = this.#attemptRequest;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = wait_ms === Number.POSITIVE_INFINITY ? null : setTimeout(resolve, wait_ms);
    this.#wake = resolve;
    const listening = signal.listen(() => resolve());
    await (event ? Promise.race([promise, event]) : promise);
    if (timer) clearTimeout(timer);
    listening.stop();
    this.#wake = null;
  }

  #rest_ms(route: Route): number {
    return timeoutsOf(route).total_ms - (this.#parts.now_ms() - this.#started_ms);
  }

  #leeway_ms(): number {
    return leeway_ms(this.#attemptRequest.inputTokens, this.#engineRequest.wholeTokens);
  }

  #patience(route: Route): Patience {
    const { connect_ms, first_part_ms, first_part_spare_ms, idle_ms } = timeoutsOf(route);
    const more_ms = this.#leeway_ms();
    const isSpared = first_part_spare_ms < first_part_ms && this.#order.hasSpare;
    return {
      connect_ms,
      idle_ms,
      first_part_ms: first_part_ms + more_ms,
      total_ms: Math.max(0, this.#rest_ms(route)),
      spare: isSpared ? this.#spareAfter(first_part_spare_ms + more_ms) : null,
    };
  }

  #spareAfter(after_ms: number): Patience["spare"] {
    return { after_ms, isAsked: () => !this.#isGivenUp() && this.#order.takeSpare() };
  }

  /** The last failure, in the words that all of them make together. */
  #told(batch: Batch): Batch {
    const last = batch.at(-1);
    if (last && last.type !== "response-failed") return batch;
    const { signal } = this.#attemptRequest;
    const fault = signal.aborted ? asFault(signal.reason) : combinedFault(this.#failures);
    return [...batch.slice(0, -1), { type: "response-failed", fault }];
  }
}

/** An answer that was ended by a limit or a filter is no empty one. */
function isEmptyAnswer(batch: Batch): boolean {
  const last = batch.at(-1);
  return last?.type === "response-end" && last.reason === "stop" && !batch.some(isPartStart);
}

function isPartStart({ type }: InferenceEvent): boolean {
  return type === "part-start";
}
