/**
 * USAGE, the meter: it stands between the engine and the caller, and nothing passes that is not counted and held. How the
 * stream ended, or how far it came, can be asked at any time: whoever owns the run settles it (run.ts).
 */
import type { InferenceEvent } from "../inference/event.ts";
import { asFault, type Fault } from "../inference/fault.ts";
import { withOverflow } from "../inference/overflow.ts";
import { noUsage, type RejectedReport, type Usage } from "../inference/usage.ts";
import type { Signal } from "../time/cancellation.ts";
import { type Tally, type TallyParts, tally } from "./tally.ts";

type Batch = readonly InferenceEvent[];

/** How a request ended, as the meter saw it. */
export interface Ending {
  usage: Usage;
  outcome: "completed" | "cancelled" | "failed";
  /** Set where a usage window's end cut the answer short. */
  stoppedBy: "usage_window" | null;
  errorCode: string | null;
  /** What the engine reported, where it is not taken as it is. */
  reportRejected: RejectedReport | null;
  /** What the engine reported of a complete answer ÷ our count of it; null where either is missing. */
  divergence: number | null;
}

/** What the meter needs of admission: room for tokens. */
export interface Hold {
  /** Whether so many output tokens may have left; grows the hold ahead of need. False: a window is at its end. */
  permits(outputTokens: number): true | Promise<boolean>;
  /** What was counted so far, for the next checkpoint. */
  progress(usage: Usage): void;
  /** Forgets the count so far, because the answer begins anew. */
  restart(): void;
  /** Throws where nothing may be delivered any more. */
  assertHeld(): void;
  /** Aborted when nothing may be delivered any more. */
  readonly signal: Signal;
}

export interface Metering extends TallyParts {
  events: AsyncIterable<Batch>;
  hold: Hold;
  /** Whether the caller reads the answer as it comes. Else nothing is delivered before its end, and it may begin anew. */
  stream: boolean;
  /** Set where a usage window alone is why the engine was told to write no more than so many tokens. */
  windowTokens?: number | null;
  /** Whether the caller, not the engine, was the reason that the stream broke off. */
  callerLeft(): boolean;
  /** Told when the first part of the answer has come. */
  firstPart(): void;
  /** Told when the events are over, for whatever reason; not where they were never begun. */
  over(): void;
}

export interface Meter {
  /** The engine's events, as far as they are held. They end in `response-end` or `response-failed`; nothing is thrown. */
  events: AsyncGenerator<Batch, void, void>;
  /** How the request ended; asked before the end, as one that broke off here. */
  ending(): Ending;
  /** Has counted what is charged and no engine reported, where a tokenizer can. Null: nothing is waited for. Never rejects. */
  counted(): Promise<void> | null;
}

export function meter(metering: Metering): Meter {
  return new Metered(metering);
}

/** A class, for what it is made of must not be made anew for each request: the runtime would know each as a stranger. */
class Metered implements Meter {
  readonly #metering: Metering;
  #count: Tally;
  readonly events: Meter["events"];
  #stoppedBy: Ending["stoppedBy"] = null;
  #failure: Fault | null = null;
  #isCompleted = false;

  constructor(metering: Metering) {
    this.#metering = metering;
    this.#count = tally(metering);
    this.events = this.#metered();
  }

  async *#metered(): AsyncGenerator<Batch, void, void> {
    const metering = this.#metering;
    const { hold, stream } = metering;
    try {
      for await (const batch of metering.events) {
        if (batch[0]?.type === "response-start" && this.#count.anyPart) this.#restart();
        const count = this.#count;
        const room = count.producesOutput(batch) ? hold.permits(count.outputTokensWith(batch)) : true;
        if (room !== true && !(await room)) {
          const fits = await fitting(batch, hold, count);
          this.#stoppedBy = "usage_window";
          this.#isCompleted = true;
          yield believed(fits, count);
          await count.counted();
          yield count.cutShort();
          return;
        }
        const isFirst = !count.anyPart;
        const terminal = count.add(batch);
        if (isFirst && count.anyPart) metering.firstPart();
        hold.progress(count.usage());
        if (terminal?.type === "response-failed") {
          // The engine may have said how long the input is; here it is known how long it may be.
          this.#failure = withOverflow(terminal.fault, metering.contextTokens, metering.inputTokensExpected);
          yield [...believed(batch, count).slice(0, -1), { ...terminal, fault: this.#failure }];
        } else if (terminal?.type === "response-end") {
          const counting = count.reported ? null : count.counted();
          let rest = count.reported ? [] : believed(batch, count).slice(0, -1);
          if (counting) {
            // All but its end leaves before it is counted.
            if (rest.length > 0) yield rest;
            await counting;
            rest = [];
          }
          if (!stream) hold.assertHeld();
          this.#isCompleted = true;
          if (isAtWindowsEnd(terminal, count.usage(), metering)) this.#stoppedBy = "usage_window";
          // An engine that never reported is spoken for: what the caller reads and what the book says are the same numbers.
          yield count.reported ? batch : [...rest, spokenFor(count), terminal];
        } else {
          yield believed(batch, count);
        }
        if (terminal) return;
      }
    } catch (thrown) {
      // The hold was lost, or there is a defect: the caller reads an error in its protocol, never silence.
      this.#failure = asFault(thrown);
      yield [{ type: "response-failed", fault: this.#failure }];
    } finally {
      metering.over();
      if (this.#isCompleted && !this.#stoppedBy) this.#count.calibrate();
    }
  }

  /** An engine failed in the middle of what nobody had seen, and another begins. */
  #restart(): void {
    this.#count = tally(this.#metering);
    this.#metering.hold.restart();
  }

  counted(): Promise<void> | null {
    return this.#isFree(this.#outcome()) ? null : this.#count.counted();
  }

  ending(): Ending {
    const count = this.#count;
    const outcome = this.#outcome();
    return {
      usage: this.#isFree(outcome) ? noUsage : count.usage(),
      outcome,
      stoppedBy: this.#stoppedBy,
      errorCode: outcome === "failed" ? (this.#failure?.code ?? "internal_error") : null,
      reportRejected: count.rejected,
      divergence: this.#stoppedBy ? null : count.divergence(),
    };
  }

  /** An answer that came whole after its caller had left was delivered to nobody. */
  #outcome(): Ending["outcome"] {
    const { stream, callerLeft } = this.#metering;
    if (this.#isCompleted && (stream || !callerLeft())) return "completed";
    return callerLeft() ? "cancelled" : "failed";
  }

  /** docs/design/usage.md, Settlement. */
  #isFree(outcome: Ending["outcome"]): boolean {
    const { stream, hold } = this.#metering;
    if (outcome === "completed") return false;
    if (stream) return outcome === "failed" && !this.#count.anyOutput;
    return outcome === "failed" || hold.signal.aborted;
  }
}

/** What the caller reads: no report that is not taken as it is. */
function believed(batch: Batch, count: Tally): Batch {
  return count.rejected ? batch.filter(({ type }) => type !== "usage") : batch;
}

function spokenFor(count: Tally): InferenceEvent {
  return { type: "usage", usage: count.usage() };
}

/** What of a batch there is still room for: a window is used to its end, whatever one read brought. It is counted here. */
async function fitting(batch: readonly InferenceEvent[], hold: Hold, count: Tally): Promise<InferenceEvent[]> {
  const fits: InferenceEvent[] = [];
  for (const event of batch) {
    if (event.type === "response-end" || event.type === "response-failed") break;
    const counts = event.type === "part-delta" || event.type === "usage";
    if (counts && !(await hold.permits(count.outputTokensWith([...fits, event])))) break;
    fits.push(event);
  }
  // Not before it is known that they leave: a lease may be lost while one of them waits.
  count.add(fits);
  return fits;
}

function isAtWindowsEnd(
  end: Extract<InferenceEvent, { type: "response-end" }>,
  usage: Usage,
  { windowTokens = null }: Metering,
): boolean {
  return windowTokens !== null && end.reason === "length" && usage.outputTokens >= windowTokens;
}
