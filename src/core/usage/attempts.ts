/**
 * USAGE, the attempts: tries one route after another until a part of an answer is delivered; after that, no other route
 * is tried. A streamed answer is delivered from its first part on; an answer that is not streamed to the caller is
 * delivered when it is complete. The output of a failed attempt is not counted; if it was counted already, the count is
 * discarded when the answer begins again. The hold, the lease and the record stay the same: docs/routing.md, When
 * another is asked.
 */
import { type InferenceEvent, isPartStart } from "../inference/event.ts";
import { asFault, Fault } from "../inference/fault.ts";
import type { Loss } from "../protocol/codec.ts";
import { combinedFault, type Failure } from "../routing/after.ts";
import { type Route, timeoutsOf } from "../routing/catalog.ts";
import type { Clock } from "../time/clock.ts";
import { ask, type Patience } from "../upstream/ask.ts";
import type { AttemptEnd, EngineReport } from "../upstream/attempt.ts";
import type { Client } from "../upstream/http1/client.ts";
import { leeway_ms } from "../upstream/target.ts";
import {
  type AttemptsSettings,
  type EngineRequest,
  engineRequestOf,
  isShownAtOnce,
  type LesserDialects,
  patienceOf,
  questionOf,
} from "./attempt-request.ts";
import { finish_ms, finishing, mayFinish } from "./departure.ts";
import { isEmptyAnswer, isSilence } from "./empty-answers.ts";
import {
  type Attempted,
  type AttemptRequest,
  type EngineAnswer,
  type EngineEvents,
  type EngineProgress,
  initialProgress,
  type LostField,
  triedOf,
  type Waited,
} from "./record.ts";
import { RouteOrder, type RouteOrderParts, type Stage, type TakenSlot } from "./route-order.ts";
import type { WholeAnswers } from "./whole-answers.ts";

type Batch = InferenceEvent[];
type Next = IteratorResult<Batch, void>;

export interface AttemptsParts extends RouteOrderParts {
  client: Client;
  attempted(attempt: Attempted): void;
  waited(wait: Waited): void;
  /** Called once per attempt for each kind of difference between what the caller wrote and what the engine is sent. */
  lost(lost: LostField): void;
  lesser: LesserDialects;
  wholeAnswers: WholeAnswers;
  /** The sum of all delays of this process's timers (node/lateness.ts). */
  late_ms(): number;
  /** Called when a route begins to answer, with the time since its attempt began. */
  firstPart(route: Route, ms: number): void;
  settings(): AttemptsSettings;
  clock: Pick<Clock, "after">;
}

/** All attempts, read as one answer. No engine is asked before the answer's first event is read. */
export class Attempts implements EngineAnswer, EngineEvents {
  readonly progress: EngineProgress;
  readonly #parts: AttemptsParts;
  readonly #attemptRequest: AttemptRequest;
  readonly #engineRequest: EngineRequest;
  readonly #order: RouteOrder;
  readonly #started_ms: number;
  #failures: Failure[] = [];
  /** The running attempt; when it began; the value of `late_ms` at that time; and how the attempt ended. */
  #attempt: AsyncGenerator<Batch, void, void> | null = null;
  #begun_ms = 0;
  #lateBefore_ms = 0;
  /** The cap on output tokens, if the engine is asked not to stream despite `unstreamed_tokens_max`; else null. */
  #quickTokens: number | null = null;
  #end: AttemptEnd | null = null;
  /** Whether the first part of the current attempt has arrived. */
  #isBegun = false;
  #isOver = false;
  /** The next attempt; undefined before the first, null after the last. */
  #stage: Stage | null | undefined;

  /** Prepares the attempts; none begins yet. `progress`: the progress of an earlier request, which is continued. */
  constructor(parts: AttemptsParts, attemptRequest: AttemptRequest, progress: EngineProgress = initialProgress()) {
    this.#parts = parts;
    this.#attemptRequest = attemptRequest;
    this.#engineRequest = engineRequestOf(attemptRequest, parts.settings());
    this.#order = new RouteOrder(parts, attemptRequest, this.#engineRequest.busyTokens);
    this.#started_ms = parts.now_ms();
    this.progress = progress;
    progress.isFinal = false;
    progress.windowTokens = this.#engineRequest.windowTokens;
  }

  get events(): EngineEvents {
    return this;
  }

  [Symbol.asyncIterator](): EngineEvents {
    return this;
  }

  next(): Promise<Next> {
    if (this.progress.isFinal) return this.#attempt?.next() ?? Promise.resolve({ done: true, value: undefined });
    return this.#isBegun ? this.#nextUnseen() : this.#nextUpToFirstPart();
  }

  async return(): Promise<Next> {
    this.#isOver = true;
    this.#order.giveUp();
    await this.#attempt?.return();
    return { done: true, value: undefined };
  }

  async #nextUpToFirstPart(): Promise<Next> {
    let batch: Batch = [];
    if (this.#stage === undefined) this.#stage = this.#order.first();
    while (this.#stage !== null) {
      const stage: Stage = this.#stage;
      const slot: TakenSlot | null = await this.#slotFor(stage);
      if (!slot) break;
      const { route } = slot;
      this.#begin(slot, stage.isFresh);
      batch = await this.#untilFirstPart(route);
      const end = this.#end;
      if (this.#isBegun || end === null) return { done: false, value: batch };
      const { stop } = this.#attemptRequest.asked.request;
      const judged: AttemptEnd =
        end.kind === "answered" && isEmptyAnswer(batch, stop) ? { ...end, kind: "empty" } : end;
      if (judged.kind === "answered") this.#wasShown(route);
      else this.#parts.health.ended(route, isSilence(batch) ? end : judged, this.#begun_ms, this.#parts.now_ms());
      this.#stage = this.#stageAfter(route, judged, batch);
    }
    this.#isBegun = true;
    this.progress.isFinal = true;
    return this.#isOver ? { done: true, value: undefined } : this.#last(batch);
  }

  /**
   * Reads an answer of which the caller has received nothing: if its engine fails, another engine may begin it again.
   */
  async #nextUnseen(): Promise<Next> {
    const next: Next = await this.#attempt!.next();
    const end = this.#end;
    if (next.done || end === null || end.kind === "answered") return next;
    this.#stage = this.#stageAfter(this.progress.route!, end, next.value);
    if (this.#stage === null) {
      this.progress.isFinal = true;
      return this.#last(next.value);
    }
    this.#isBegun = false;
    return { done: false, value: [{ type: "response-start", ...this.#attemptRequest.asked.identity }] };
  }

  /** Takes a slot at an engine as soon as one is free. Null if the request was given up, or waited too long. */
  async #slotFor(stage: Stage): Promise<TakenSlot | null> {
    this.progress.isAtEngine = false;
    if (stage.wait_ms > 0) await this.#order.pause(stage.wait_ms);
    if (this.#order.isGivenUp) return null;
    const slot = this.#order.enter(stage);
    if (slot) return slot;
    const began_ms = this.#parts.now_ms();
    const found = await this.#order.queued(stage).catch((fault: unknown) => asFault(fault));
    const ms = this.#parts.now_ms() - began_ms;
    this.progress.queued_ms += ms;
    const model = this.#attemptRequest.asked.model.id;
    if (found instanceof Fault) {
      this.#failures.push({ kind: "busy", fault: found });
      this.#parts.waited({ model, outcome: "full", ms });
      return null;
    }
    this.#parts.waited({ model, outcome: found ? "served" : "left", ms });
    return found;
  }

  #begin({ route, begun_ms, release }: TakenSlot, isFresh: boolean): void {
    const attemptRequest = this.#attemptRequest;
    const { lost, lesser, now_ms, wholeAnswers, health, clock } = this.#parts;
    const { model, principal } = attemptRequest.asked;
    const { quickTokens } = this.#engineRequest;
    const isQuick = quickTokens !== null && wholeAnswers.mayBeWhole(route, principal.key.id, quickTokens, now_ms());
    this.#quickTokens = isQuick ? quickTokens : null;
    const stream = this.#engineRequest.stream && !isQuick;
    const isWell = () => mayFinish(health.stateOf(route, now_ms()));
    const finish = stream ? null : finishing(attemptRequest, clock, isWell);
    this.progress.route = route;
    this.progress.attempts += 1;
    this.progress.isAtEngine = true;
    this.#end = null;
    this.#begun_ms = begun_ms;
    this.#lateBefore_ms = this.#parts.late_ms();
    const losses = new Set<Loss>();
    const traced = attemptRequest.trace?.attempt(route.upstream, route.model);
    this.#attempt = ask({
      ...questionOf(this.#engineRequest, attemptRequest, route, () => this.#order.session()),
      stream,
      client: this.#parts.client,
      dialect: lesser.of(route, now_ms()),
      sent: (bytes) => {
        this.progress.sent_bytes = bytes;
      },
      refuses: (dialect) => lesser.learned(route, dialect, now_ms()),
      lost: (loss) => {
        if (!losses.has(loss)) lost({ model: model.id, route, loss });
        losses.add(loss);
      },
      signal: finish?.signal ?? attemptRequest.signal,
      isFresh,
      traceHeaders: traced?.headers ?? null,
      patience: this.#patience(route),
      ended: (end, report) => {
        release();
        finish?.stop();
        traced?.ended(end.kind, end.status, report);
        this.#ended(route, end, report);
      },
    });
  }

  /** The events of the attempt up to the answer's first part, or all events if the answer has none. */
  async #untilFirstPart(route: Route): Promise<Batch> {
    const events: Batch = [];
    for (;;) {
      const { done, value } = await this.#attempt!.next();
      if (done) throw new Error("an attempt ended without an end");
      events.push(...value);
      if (this.#end !== null) return events;
      if (events.some(isPartStart)) {
        this.#isBegun = true;
        this.progress.isFinal = isShownAtOnce(this.#attemptRequest.asked) || !this.#order.hasSpare;
        this.#wasShown(route);
        return events;
      }
    }
  }

  /**
   * Records that the route has begun to answer. The route then counts as healthy, however long the answer takes, unless
   * other routes begin far sooner.
   */
  #wasShown(route: Route): void {
    const { health, now_ms, late_ms, firstPart, replicas } = this.#parts;
    const ms = now_ms() - this.#begun_ms;
    firstPart(route, ms);
    const taken_ms = Math.max(0, ms - this.#leeway_ms() - (late_ms() - this.#lateBefore_ms));
    health.shown(route, replicas.routesOf(this.#attemptRequest.asked.model), taken_ms, this.#begun_ms, now_ms());
  }

  #ended(route: Route, end: AttemptEnd, { usage }: EngineReport): void {
    this.#end = end;
    const { now_ms, health, attempted, wholeAnswers } = this.#parts;
    const ms = now_ms() - this.#begun_ms;
    const isContinued = this.#attemptRequest.except !== undefined && this.#isBegun;
    this.progress.tried.push(triedOf(route, end, ms, isContinued));
    attempted({ model: this.#attemptRequest.asked.model.id, route, end, ms });
    const { asked, signal, halted } = this.#attemptRequest;
    const reported = end.kind === "answered" ? (usage?.outputTokens ?? null) : null;
    const { id: keyId } = asked.principal.key;
    const isLeft = signal.aborted && !halted.aborted;
    wholeAnswers.ended({ route, keyId, ms, reported, quickTokens: this.#quickTokens, isLeft }, now_ms());
    // `#wasShown` has recorded the beginning of the answer, so only a later failure is worth recording.
    const isNews = end.kind !== "answered" || !this.#isBegun;
    if (isNews && (this.#isBegun || this.#isOver)) health.ended(route, end, this.#begun_ms, now_ms());
  }

  #stageAfter(route: Route, end: AttemptEnd, batch: Batch): Stage | null {
    const last = batch.at(-1);
    if (last?.type === "response-failed") this.#failures.push({ kind: end.kind, fault: last.fault });
    if (end.kind !== "answered" && end.kind !== "abandoned") this.progress.isAtEngine = false;
    return this.#order.isGivenUp ? null : this.#order.after(route, end, this.#rest_ms(route));
  }

  #rest_ms(route: Route): number {
    return timeoutsOf(route).total_ms - (this.#parts.now_ms() - this.#started_ms);
  }

  #leeway_ms(): number {
    // The engine may be half as fast as was measured, so it gets twice the time.
    const quick_ms = this.#quickTokens === null ? 0 : 2 * finish_ms;
    return leeway_ms(this.#attemptRequest.asked.inputTokens, this.#engineRequest.wholeTokens) + quick_ms;
  }

  #patience(route: Route): Patience {
    const take = this.#order.hasSpare ? () => !this.#order.isGivenUp && this.#order.takeSpare() : null;
    const hasTools = this.#attemptRequest.asked.request.tools.length > 0;
    return patienceOf(route, { more_ms: this.#leeway_ms(), rest_ms: this.#rest_ms(route), hasTools }, take);
  }

  /** The answer's last batch. If the batch is a failure, its fault combines the faults of all attempts. */
  #last(batch: Batch): Next {
    const last = batch.at(-1);
    if (last && last.type !== "response-failed") return { done: false, value: batch };
    const { signal } = this.#attemptRequest;
    const fault = signal.aborted ? asFault(signal.reason) : combinedFault(this.#failures);
    return { done: false, value: [...batch.slice(0, -1), { type: "response-failed", fault }] };
  }
}
