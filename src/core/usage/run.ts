/**
 * USAGE: a request's run, from its admission to its record in the ledger. The steps: enter (ask for admission), open (ask
 * an engine), count, price, settle. A run is disposable, and settles exactly once: when its events have ended, or when it
 * is disposed of, whichever comes first. Every throw, return or failure after `start`, and every client that leaves, leads
 * to that settlement.
 */
import type { Admitting, Entrance } from "../admission/entrance.ts";
import type { Reservation, Settlement } from "../admission/reservation.ts";
import { asFault, type Fault } from "../inference/fault.ts";
import { priceOf } from "../inference/money.ts";
import { emptyRequest } from "../inference/request.ts";
import { noUsage, promptTokens } from "../inference/usage.ts";
import { isReadAsProduced } from "./attempt-request.ts";
import type { InputEstimate } from "./input-estimate.ts";
import { Meter, type Metering } from "./meter.ts";
import { type OutputCalibration, routeName } from "./output-calibration.ts";
import {
  type AttemptRequest,
  type Caller,
  type Ended,
  type Ending,
  type EngineAnswer,
  type RunRequest,
  startedAnswer,
  type Watcher,
} from "./record.ts";
import type { Tokenizing } from "./tally.ts";

export interface Run extends AsyncDisposable {
  /** The grant, and the state of the sliding rate limits before this request was counted. */
  readonly grant: Reservation["grant"];
  readonly rates: Reservation["rates"];
  /**
   * The events of the answer, as far as the hold (the amount reserved for the request) pays for them. The last event is
   * `response-end` or `response-failed`.
   */
  readonly events: Meter["events"];
  /** Resolves when the ledger has confirmed the settlement. Call it only after the run was disposed of. */
  confirmed(): Promise<void>;
}

export interface Runs {
  /** Resolves when the grant is durable. Throws the Fault of a refusal; then nothing is held. */
  start(asked: RunRequest, caller: Caller, planNow?: Admitting["planNow"]): Promise<Run>;
}

export interface RunParts {
  admission: Entrance;
  inputEstimate: Pick<InputEstimate, "observe">;
  outputCalibration: OutputCalibration;
  /** Observes all runs. A caller observes only its own run. */
  watcher: Watcher;
  /** Sends the request to the model's engines once the first event is read. */
  open(attemptRequest: AttemptRequest): EngineAnswer;
  /** A counter with the model's tokenizer, off the main thread. Null if the tokenizer is not known. */
  tokenizing(asked: RunRequest): Tokenizing | null;
}

export function runs(parts: RunParts): Runs {
  return {
    async start(asked, caller, planNow) {
      const decided = Promise.withResolvers<void>();
      const open = (held: number, isSlight: boolean) =>
        parts.open({
          asked,
          room: { allowed: asked.outputTokensAllowed, held, isSlight },
          signal: caller.signal,
          halted: caller.halted,
          granted: decided.promise,
          trace: caller.trace ?? null,
        });
      let early = null as EngineAnswer | null;
      // If the limits have ample room for the request, the engine is asked while the ledger decides. Nothing is
      // forwarded to the caller before the grant.
      const ahead = (isSlight: boolean) => {
        if (!caller.signal.aborted) early = startedAnswer(open(asked.outputTokensAllowed, isSlight));
      };
      const admitted = caller.trace?.admission(asked.operation);
      let reservation: Reservation;
      try {
        reservation = await parts.admission.enter(asked, { planNow, ahead });
      } catch (refused) {
        const fault = asFault(refused);
        admitted?.(fault.code);
        caller.end(fault);
        void early?.events.return();
        throw refused;
      } finally {
        decided.resolve();
      }
      const run = new GrantedRun(parts, asked, caller, reservation);
      try {
        admitted?.(null);
        const { teamId, outputTokens } = reservation.grant;
        if (teamId !== undefined) caller.trace?.counted(teamId);
        run.begin(early ?? open(outputTokens, reservation.isSlight));
        return run;
      } catch (defect) {
        await run[Symbol.asyncDispose]();
        throw defect;
      }
    },
  };
}

/**
 * A request has at most this many times the bytes of the one that its engine gets, if no field of it is left out:
 * `\u0430` is six bytes for two.
 */
const asSent_max = 3;

class GrantedRun implements Run {
  readonly #parts: RunParts;
  readonly #asked: RunRequest;
  readonly #caller: Caller;
  readonly #reservation: Reservation;
  #answer: EngineAnswer | null = null;
  #meter: Meter | null = null;
  #firstPart_ms: number | null = null;
  /** Milliseconds from the request's arrival to its grant. */
  readonly #admitted_ms: number;
  #total_ms = 0;
  #settled: Promise<void> | null = null;
  #confirmed: Promise<void> = Promise.resolve();
  /** Whether the answer was read to its end, so that no engine works on it any more. */
  #isComplete = false;

  constructor(parts: RunParts, asked: RunRequest, caller: Caller, reservation: Reservation) {
    this.#parts = parts;
    this.#asked = asked;
    this.#caller = caller;
    this.#reservation = reservation;
    this.#admitted_ms = caller.elapsed_ms();
  }

  get grant() {
    return this.#reservation.grant;
  }

  get rates() {
    return this.#reservation.rates;
  }

  get events() {
    return this.#meter!.events;
  }

  begin(answer: EngineAnswer): void {
    const { source } = this.#reservation.grant;
    this.#answer = answer;
    this.#caller.granted(source);
    this.#parts.watcher.granted(source);
    this.#reservation.signal.listen((lost) => this.#caller.end(asFault(lost)));
    this.#meter = new Meter(this.#metering(answer));
  }

  #metering({ events, progress }: EngineAnswer): Metering {
    const { outputCalibration } = this.#parts;
    const asked = this.#asked;
    const caller = this.#caller;
    const { request, model } = asked;
    const tokenizing = this.#parts.tokenizing(asked);
    return {
      events,
      hold: this.#reservation,
      stream: isReadAsProduced(asked),
      fetched: asked.fetched ?? null,
      contextTokens: model.contextTokens * (request.passed?.inputs ?? 1),
      outputTokensCap: Math.min(request.outputTokens_max ?? Infinity, model.outputTokens_max),
      // If the caller left while no engine had the request, no engine has read the input, and none of it is charged.
      get inputTokensExpected() {
        const tokens = progress.isAtEngine ? asked.inputTokensExpected : 0;
        return Math.ceil(tokens * progress.inputShare);
      },
      calibration: () => outputCalibration.of(progress.route ? routeName(progress.route) : ""),
      tokenizing,
      keepsText: (bytes) => caller.keepsText(bytes),
      windowTokens: progress.windowTokens,
      callerLeft: () => caller.left,
      isCancelled: () => caller.isCancelled ?? false,
      firstPart: () => {
        this.#firstPart_ms = Math.round(caller.elapsed_ms());
        caller.trace?.firstPart();
        if (progress.isFinal && !progress.isNeededToTheEnd && !tokenizing?.hasPrompt) emptyRequest(asked.request);
      },
      over: () => this.#settle(),
    };
  }

  confirmed(): Promise<void> {
    return this.#confirmed;
  }

  /** Ends the request to the engine first: nothing else would wake code that waits for the engine. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#settled) this.#caller.end(asFault(new Error("the run was given up before its end")));
    if (!this.#isComplete)
      await Promise.all([this.#meter?.events.return(), this.#answer?.events.return()]).finally(() => this.#settle());
    // Waits until the settlement is sent: the request's log line needs the record, and a node must not exit before.
    await this.#settled;
  }

  /** Settles once. Charged tokens that no engine reported are counted first, if a tokenizer can count them. */
  #settle(): void {
    if (this.#settled) return;
    this.#total_ms = this.#caller.elapsed_ms();
    const ending = this.#ending();
    this.#isComplete = ending.outcome === "completed";
    const counting = this.#meter?.counted() ?? null;
    this.#settled = Promise.resolve();
    if (counting) this.#settled = counting.then(() => this.#record({ ...ending, usage: this.#ending().usage }));
    else this.#record(ending);
  }

  /** Sends the settlement to the ledger, and then informs everything that observes the run. */
  #record(ending: Ending): void {
    const { inputEstimate, watcher } = this.#parts;
    const asked = this.#asked;
    const caller = this.#caller;
    const { usage } = ending;
    // Searches cost nothing if no engine has read the request.
    const searches = promptTokens(usage) > 0 ? (asked.request.passed?.searches ?? 0) : 0;
    const nanos = priceOf(usage, asked.model.prices, searches);
    this.#settleWithLedger(ending, searches, nanos);
    const { route, tried = [], queued_ms = 0, inputShare = 1, sent_bytes } = this.#answer?.progress ?? {};
    if (usage.source !== "estimated") {
      const text = (asked.inputBytes - (asked.blank_bytes ?? 0)) * inputShare;
      // Fields that no engine gets say nothing of a model's tokens. A ranking counts its query for each document.
      const text_max = asked.request.passed ? text : (sent_bytes ?? text) * asSent_max;
      inputEstimate.observe(asked.model, Math.min(text, text_max), asked.media, usage);
    }
    const ended: Ended = {
      ...ending,
      requestId: asked.requestId,
      operation: asked.operation,
      model: asked.model.id,
      organizationId: asked.principal.organization.id,
      stream: asked.request.stream,
      nanos,
      inputTokensExpected: asked.inputTokensExpected,
      upstream: route?.upstream.name ?? null,
      replica: route?.upstream.address ?? null,
      tried,
      queued_ms,
      firstPart_ms: this.#firstPart_ms,
      total_ms: this.#total_ms,
      traceId: caller.trace?.sampledId,
    };
    caller.ended(ended);
    watcher.ended(ended);
  }

  #settleWithLedger({ divergence: _, ...ending }: Ending, searches: number, nanos: number): void {
    const recorded = this.#caller.trace?.settlement();
    this.#confirmed = this.#reservation.settle({
      ...ending,
      ...(searches > 0 && { searches }),
      nanos,
      route: this.#servedBy(),
    });
    if (recorded) void this.#confirmed.finally(recorded);
  }

  /**
   * The route, as the record states it. The list of attempts is added if there were several, if the engine has several
   * addresses, or if an engine sent a status or a text.
   */
  #servedBy(): Settlement["route"] {
    const { route, attempts = 0, tried = [] } = this.#answer?.progress ?? {};
    if (!route) return null;
    const { name: upstream, address: replica } = route.upstream;
    const first_ms = this.#firstPart_ms;
    // In the record, times count from the admission.
    const firstPart_ms = first_ms === null ? null : Math.max(0, first_ms - Math.round(this.#admitted_ms));
    const served = { upstream, attempts, firstPart_ms };
    const isTold = tried.some(({ status, said }) => status !== undefined || said !== undefined);
    return tried.length > 1 || replica || isTold ? { ...served, tried } : served;
  }

  #ending(): Ending {
    let fault: Fault | null = null;
    try {
      if (this.#meter) return this.#meter.ending();
    } catch (thrown) {
      fault = asFault(thrown);
      // The count failed because of a defect. Unknown usage is not charged.
    }
    const outcome = this.#caller.left ? "cancelled" : "failed";
    return {
      usage: noUsage,
      outcome,
      stoppedBy: null,
      errorCode: outcome === "failed" ? "internal_error" : null,
      fault,
      reportRejected: null,
      divergence: null,
    };
  }
}
