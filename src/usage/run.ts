/**
 * USAGE: a request's run, from its grant to its record: enter → open → count → price → settle. Whoever gets a grant settles
 * it: a run is disposable, and its one settlement happens when its events are over or when it is disposed, whichever comes
 * first. A throw, a return, a departure or a failure anywhere after `start` ends there.
 */
import type { RatedEntrance, RatedEntry, RatedReservation } from "../admission/rates.ts";
import type { OwnBytes } from "../body/own-bytes.ts";
import type { AnswerPart } from "../inference/answer-part.ts";
import { asFault, type Fault } from "../inference/fault.ts";
import { letGo } from "../inference/let-go.ts";
import type { Media } from "../inference/media.ts";
import { noUsage } from "../inference/usage.ts";
import type { ResponseIdentity } from "../protocol/codec.ts";
import type { Affinity } from "../routing/affinity.ts";
import type { CatalogModel } from "../routing/catalog.ts";
import type { BillingSource, Operation } from "../store/ledger.ts";
import type { AttemptRequest } from "./attempt-request.ts";
import type { Signals } from "./departure.ts";
import type { InputEstimate } from "./input-estimate.ts";
import { type Ending, type Meter, meter } from "./meter.ts";
import { ahead, type Opened, type Tried } from "./opened.ts";
import { type OutputCalibration, type RouteCalibration, routeName } from "./output-calibration.ts";
import { priceOf } from "./price.ts";
import type { AnswerTokens, Counting } from "./tally.ts";
import type { RunTrace } from "./trace.ts";

/** What is to run, prepared by whoever knows its protocol. Nothing is held for it yet. */
export interface RunRequest extends Omit<RatedEntry, "ahead"> {
  model: CatalogModel;
  /** The middle of what the whole prompt may be, charged where no engine reports. At most `inputTokens`. */
  inputTokensExpected: number;
  /** What of it is no text. */
  media: Media;
  /** Size of the request with all that it refers to, which `inputTokens` was estimated from. */
  inputBytes: number;
  /** The bytes of a large one, as it came. */
  own?: OwnBytes | null;
  /** Output tokens that the model and its context allow. */
  outputTokensAllowed: number;
  identity: ResponseIdentity;
  affinity: Affinity;
  /** Hears how much of the answer is held, where that is much; throws the Fault of whoever has no room for it. */
  holdAnswer?(bytes: number): void;
}

/** Whoever wants to know what becomes of a run; told after the ledger. */
export interface Watcher {
  granted(source: BillingSource): void;
  ended(ended: Ended): void;
}

/** Whoever waits for the answer. */
export interface Caller extends Watcher, Readonly<Signals> {
  /** Whether it went away: nobody reads what is still to come. */
  readonly left: boolean;
  /** Ends its work, with what the answer then says. */
  end(fault: Fault): void;
  /** Since the request arrived. */
  elapsed_ms(): number;
  /** Whether so many bytes more may be kept of its answer until that is settled. */
  keepsText(bytes: number): boolean;
  /** Follows the run, where it is traced. */
  readonly trace?: RunTrace | null;
}

export interface Ended extends Ending {
  requestId: string;
  operation: Operation;
  /** Public model id. */
  model: string;
  organizationId: string;
  stream: boolean;
  /** What its usage costs, whatever there was room for. */
  units: number;
  /** The middle of what its whole prompt may be. */
  inputTokensExpected: number;
  /** Its name in the configuration; null where none was asked. */
  upstream: string | null;
  /** Its address, where its name has several; else null. */
  replica: string | null;
  /** Each attempt at an engine. */
  tried: readonly Tried[];
  /** How long it waited for room at engines, in milliseconds. */
  queued_ms: number;
  /** From the request's arrival; null where no part of an answer came. */
  firstPart_ms: number | null;
  /** From the request's arrival to the end of its answer. */
  total_ms: number;
  /** Of a trace that is kept. */
  traceId: string | undefined;
}

export interface Run extends AsyncDisposable {
  /** What was granted and what the rates said, this request not yet counted. */
  readonly grant: RatedReservation["grant"];
  readonly rates: RatedReservation["rates"];
  /** The answer, as far as it is held and counted. Its last event is `response-end` or `response-failed`. */
  readonly events: Meter["events"];
}

export interface Runs {
  /** Resolves when the grant is durable. Throws the Fault of a refusal; then nothing is held. */
  start(asked: RunRequest, caller: Caller): Promise<Run>;
}

export interface RunParts {
  admission: RatedEntrance;
  inputEstimate: Pick<InputEstimate, "observe">;
  outputCalibration: OutputCalibration;
  /** For every run; beside the caller of each. */
  watcher: Watcher;
  /** One of the model's engines after the other. Nothing is sent before the first event is asked for. */
  open(attemptRequest: AttemptRequest): Opened;
  /** Counts with the model's tokenizer, off the path; null where that is not known. */
  tokenizing(asked: RunRequest): Tokenizing | null;
}

export interface Tokenizing {
  /** Whether the prompt may be counted: what that needs is let go otherwise. */
  readonly hasPrompt: boolean;
  prompt(): Promise<number> | null;
  answer(parts: readonly AnswerPart[]): Promise<AnswerTokens>;
}

export function runs(parts: RunParts): Runs {
  return {
    async start(asked, caller) {
      const decided = Promise.withResolvers<void>();
      const open = (held: number) =>
        parts.open({
          model: asked.model,
          request: asked.request,
          inputBytes: asked.inputBytes,
          own: asked.own ?? null,
          inputTokens: asked.inputTokens,
          identity: asked.identity,
          plan: asked.plan,
          affinity: asked.affinity,
          room: { allowed: asked.outputTokensAllowed, held },
          signal: caller.signal,
          holdAnswer: asked.holdAnswer,
          halted: caller.halted,
          granted: decided.promise,
          trace: caller.trace ?? null,
        });
      let early = null as Opened | null;
      const entry: RatedEntry = {
        ...asked,
        // Where room is ample the engine thinks while the ledger decides; nothing leaves before the grant.
        ahead: () => {
          if (!caller.signal.aborted) early = ahead(open(asked.outputTokensAllowed));
        },
      };
      const admitted = caller.trace?.admission();
      let reservation: RatedReservation;
      try {
        reservation = await parts.admission.enter(entry);
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
        run.begin(early ?? open(reservation.grant.outputTokens));
        return run;
      } catch (defect) {
        await run[Symbol.asyncDispose]();
        throw defect;
      }
    },
  };
}

class GrantedRun implements Run {
  #opened: Opened | null = null;
  #meter: Meter | null = null;
  #firstPart_ms: number | null = null;
  #total_ms = 0;
  #settled: Promise<void> | null = null;
  /** Its answer was read to the end: the engine is let go. */
  #isComplete = false;

  constructor(
    readonly parts: RunParts,
    readonly asked: RunRequest,
    readonly caller: Caller,
    readonly reservation: RatedReservation,
  ) {}

  get grant() {
    return this.reservation.grant;
  }

  get rates() {
    return this.reservation.rates;
  }

  get events() {
    return this.#meter!.events;
  }

  begin(opened: Opened): void {
    const { parts, asked, caller, reservation } = this;
    this.#opened = opened;
    caller.granted(reservation.grant.source);
    parts.watcher.granted(reservation.grant.source);
    reservation.signal.listen((lost) => caller.end(asFault(lost)));
    const tokenizing = parts.tokenizing(asked);
    let known = null as { route: Opened["route"]; calibration: RouteCalibration } | null;
    this.#meter = meter({
      events: opened.events,
      hold: reservation,
      stream: asked.request.stream,
      contextTokens: asked.model.contextTokens,
      outputTokensCap: Math.min(asked.request.outputTokens_max ?? Infinity, asked.model.outputTokens_max),
      // A caller that left while its request was at no engine, which has read nothing then.
      get inputTokensExpected() {
        const tokens = opened.isAtEngine ? asked.inputTokensExpected : 0;
        return Math.ceil(tokens * (opened.inputShare ?? 1));
      },
      get calibration() {
        const { route } = opened;
        if (known?.route !== route || known === null)
          known = { route, calibration: parts.outputCalibration.of(route ? routeName(route) : "") };
        return known.calibration;
      },
      counting: tokenizing && countingFor(tokenizing, caller),
      windowTokens: opened.windowTokens,
      callerLeft: () => caller.left,
      firstPart: () => {
        this.#firstPart_ms = Math.round(caller.elapsed_ms());
        caller.trace?.firstPart();
        if (opened.isFinal && !tokenizing?.hasPrompt) letGo(asked.request);
      },
      over: () => this.#settle(),
    });
  }

  /** The engine is let go first, or nothing would wake what waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#settled) this.caller.end(asFault(new Error("the run was given up before its end")));
    if (!this.#isComplete)
      await Promise.all([this.#meter?.events.return(), this.#opened?.events.return()]).finally(() => this.#settle());
    // The request's line in the log, and a node that stops, wait for the record.
    await this.#settled;
  }

  /** Once. What is charged and was not reported is counted first, where that can be: nobody reads it here. */
  #settle(): void {
    if (this.#settled) return;
    this.#total_ms = this.caller.elapsed_ms();
    const ending = this.#ending();
    this.#isComplete = ending.outcome === "completed";
    const counting = this.#meter?.counted() ?? null;
    this.#settled = Promise.resolve();
    if (counting) this.#settled = counting.then(() => this.#tell({ ...ending, usage: this.#ending().usage }));
    else this.#tell(ending);
  }

  /** First of all the ledger is told; what else wants to know comes after. */
  #tell(ending: Ending): void {
    const { parts, asked, caller, reservation } = this;
    const { usage, outcome, stoppedBy, errorCode, reportRejected, divergence } = ending;
    const firstPart_ms = this.#firstPart_ms;
    const { name: upstream, address: replica } = this.#opened?.route?.upstream ?? {};
    const { tried = [], queued_ms = 0, attempts = 0 } = this.#opened ?? {};
    const units = priceOf(usage, asked.model.prices);
    const told = caller.trace?.settlement();
    const last = upstream === undefined ? null : { upstream, attempts, firstPart_ms };
    const route = last && (tried.length > 1 || replica) ? { ...last, tried } : last;
    const confirmed = reservation.settle({ usage, units, outcome, stoppedBy, errorCode, route, reportRejected });
    if (told) void confirmed.finally(told);
    const inputBytes = asked.inputBytes * (this.#opened?.inputShare ?? 1);
    if (usage.source !== "estimated") parts.inputEstimate.observe(asked.model, inputBytes, asked.media, usage);
    const ended: Ended = {
      usage,
      outcome,
      stoppedBy,
      errorCode,
      reportRejected,
      divergence,
      requestId: asked.requestId,
      operation: asked.operation,
      model: asked.model.id,
      organizationId: asked.principal.organization.id,
      stream: asked.request.stream,
      units,
      inputTokensExpected: asked.inputTokensExpected,
      upstream: upstream ?? null,
      replica: replica ?? null,
      tried,
      queued_ms,
      firstPart_ms,
      total_ms: this.#total_ms,
      traceId: caller.trace?.sampledId,
    };
    caller.ended(ended);
    parts.watcher.ended(ended);
  }

  #ending(): Ending {
    try {
      if (this.#meter) return this.#meter.ending();
    } catch {
      // A defect in the count: what is not known is not charged.
    }
    const outcome = this.caller.left ? "cancelled" : "failed";
    const errorCode = outcome === "failed" ? "internal_error" : null;
    return {
      usage: noUsage,
      outcome,
      stoppedBy: null,
      errorCode,
      reportRejected: null,
      divergence: null,
    };
  }
}

function countingFor(tokenizing: Tokenizing, caller: Caller): Counting {
  return {
    prompt: () => tokenizing.prompt(),
    answer: (parts) => tokenizing.answer(parts),
    begun: () => void tokenizing.answer([]).catch(() => {}),
    keeps: (bytes) => caller.keepsText(bytes),
  };
}
