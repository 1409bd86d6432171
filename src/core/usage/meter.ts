/**
 * USAGE, the meter: stands between the engine and the caller, and forwards only what is counted and what the hold (the
 * reserved amount) pays for. It knows at any time how the stream ended or how far it got; the run that owns the meter
 * settles this (run.ts).
 */
import type { Reservation } from "../admission/reservation.ts";
import { type InferenceEvent, isTerminal } from "../inference/event.ts";
import { asFault, type Fault } from "../inference/fault.ts";
import { withOverflow } from "../inference/overflow.ts";
import { noUsage, type Usage } from "../inference/usage.ts";
import type { Ending, Fetched } from "./record.ts";
import { Tally, type TallyParts } from "./tally.ts";

type Batch = readonly InferenceEvent[];
type EndEvent = Extract<InferenceEvent, { type: "response-end" }>;

export type MeteredHold = Pick<
  Reservation,
  "permits" | "stoppingLimit" | "progress" | "restart" | "assertHeld" | "signal"
>;

export interface Metering extends TallyParts {
  events: AsyncIterable<Batch>;
  hold: MeteredHold;
  /**
   * Whether the answer is delivered as it arrives. If not, nothing is delivered before its end, and it may begin again:
   * if the node dies before that, nothing is charged.
   */
  stream: boolean;
  /**
   * Set if the client fetches the answer later: then a part of the answer counts as delivered once the client can fetch
   * it.
   */
  fetched: Fetched | null;
  /** The output tokens that a usage window still pays for, if those are fewer than the request's own cap; else null. */
  windowTokens?: number | null;
  callerLeft(): boolean;
  isCancelled?(): boolean;
  firstPart(): void;
  /** Called when the events have ended for any reason; not called if they were never read. */
  over(): void;
}

export class Meter {
  readonly #metering: Metering;
  /**
   * The engine's events, as far as the hold pays for them. The events end in `response-end` or `response-failed`;
   * nothing is thrown.
   */
  readonly events: AsyncGenerator<Batch, void, void>;
  #count: Tally;
  #stoppedBy: Ending["stoppedBy"] = null;
  #failure: Fault | null = null;
  #isCompleted = false;
  /** The usage up to which a streamed background response was delivered. */
  #delivered = noUsage;

  constructor(metering: Metering) {
    this.#metering = metering;
    this.#count = new Tally(metering);
    this.events = this.#metered();
  }

  async *#metered(): AsyncGenerator<Batch, void, void> {
    const { events, hold, stream, fetched, firstPart, over } = this.#metering;
    try {
      for await (const batch of events) {
        if (batch[0]?.type === "response-start" && this.#count.anyPart) this.#restart();
        const count = this.#count;
        const room = batch.some(isDelta) ? hold.permits(count.outputTokensWith(batch)) : true;
        if (room !== true && !(await room)) {
          const fits = await fitting(batch, hold, count);
          this.#stoppedBy = hold.stoppingLimit();
          this.#isCompleted = true;
          yield believed(fits, count);
          await count.counted();
          yield count.cutShort();
          return;
        }
        const isFirst = !count.anyPart;
        const terminal = count.add(batch);
        if (isFirst && count.anyPart) firstPart();
        const usage = count.usage();
        hold.progress(usage, stream && !fetched && count.anyOutput);
        if (!terminal) {
          yield believed(batch, count);
          if (fetched && stream && count.anyOutput) void this.#deliveredLater(fetched, usage);
          continue;
        }
        if (terminal.type === "response-failed") {
          yield this.#failed(batch, terminal.fault);
          return;
        }
        let rest = believed(batch, count).slice(0, -1);
        const counting = count.reported ? null : count.counted();
        if (counting) {
          // All events but the last are delivered before a tokenizer counts.
          if (rest.length > 0) yield rest;
          await counting;
          rest = [];
        }
        if (!stream || fetched) hold.assertHeld();
        this.#completed(terminal);
        // If the engine never reported, the caller gets the counts that are recorded for the request.
        yield count.reported ? batch : [...rest, { type: "usage", usage: count.usage() }, terminal];
        return;
      }
    } catch (thrown) {
      // The request lost its lease, or this program has a defect: the stream ends with an error of the caller's protocol.
      this.#failure = asFault(thrown);
      yield [{ type: "response-failed", fault: this.#failure }];
    } finally {
      over();
      if (this.#isCompleted && !this.#stoppedBy) this.#count.calibrate();
    }
  }

  async #deliveredLater(fetched: Fetched, usage: Usage): Promise<void> {
    if (!(await fetched.delivered())) return;
    if (fetched.isStreamed) this.#delivered = usage;
    this.#metering.hold.progress(usage, true);
  }

  /**
   * Discards the count, because an engine failed before its answer was delivered, and another engine begins the answer
   * again.
   */
  #restart(): void {
    this.#count = new Tally(this.#metering);
    this.#metering.hold.restart();
  }

  /**
   * The batch that ends a failed answer. If the input was too long, the fault gets two lengths: the engine's count of
   * the input, and the model's context.
   */
  #failed(batch: Batch, fault: Fault): Batch {
    const { contextTokens, inputTokensExpected } = this.#metering;
    this.#failure = withOverflow(fault, contextTokens, inputTokensExpected);
    return [...believed(batch, this.#count).slice(0, -1), { type: "response-failed", fault: this.#failure }];
  }

  #completed(end: EndEvent): void {
    const { windowTokens = null } = this.#metering;
    this.#isCompleted = true;
    if (windowTokens !== null && end.reason === "length" && this.#count.usage().outputTokens >= windowTokens)
      this.#stoppedBy = this.#metering.hold.stoppingLimit();
  }

  /**
   * Lets a tokenizer count the charged tokens that no engine reported. Null if there is nothing to count. Never
   * rejects.
   */
  counted(): Promise<void> | null {
    return this.#isFree(this.#outcome()) ? null : this.#count.counted();
  }

  /** How the request ended. Before its end, how it would end if it broke off now. */
  ending(): Ending {
    const count = this.#count;
    const outcome = this.#outcome();
    return {
      usage: this.#isFree(outcome) ? this.#delivered : count.usage(),
      outcome,
      stoppedBy: this.#stoppedBy,
      errorCode: outcome === "failed" ? (this.#failure?.code ?? "internal_error") : null,
      fault: outcome === "failed" ? this.#failure : null,
      reportRejected: count.rejected,
      divergence: this.#stoppedBy ? null : count.divergence(),
    };
  }

  /** An answer that arrived after its caller had left was delivered to nobody, and counts as cancelled. */
  #outcome(): Ending["outcome"] {
    const { stream, callerLeft, isCancelled } = this.#metering;
    if (isCancelled?.()) return "cancelled";
    if (this.#isCompleted && (stream || !callerLeft())) return "completed";
    return callerLeft() ? "cancelled" : "failed";
  }

  /**
   * Whether the request costs nothing, or for a streamed background response no more than was delivered:
   * docs/design/usage.md, Settlement.
   */
  #isFree(outcome: Ending["outcome"]): boolean {
    const { stream, fetched, hold } = this.#metering;
    if (outcome === "completed") return false;
    if (fetched) return !fetched.isKept || !this.#count.anyOutput;
    if (stream) return outcome === "failed" && !this.#count.anyOutput;
    return outcome === "failed" || hold.signal.aborted;
  }
}

const isDelta = ({ type }: InferenceEvent) => type === "part-delta";

/** Returns the batch for the caller, without a usage report that was rejected. */
function believed(batch: Batch, count: Tally): Batch {
  return count.rejected ? batch.filter(({ type }) => type !== "usage") : batch;
}

/**
 * The events of a batch that the hold still pays for, so that a usage window can be used up to its last token. The
 * events are counted here.
 */
async function fitting(batch: Batch, hold: MeteredHold, count: Tally): Promise<InferenceEvent[]> {
  const fits: InferenceEvent[] = [];
  for (const event of batch) {
    if (isTerminal(event)) break;
    const counts = event.type === "part-delta" || event.type === "usage";
    if (counts && !(await hold.permits(count.outputTokensWith([...fits, event])))) break;
    fits.push(event);
  }
  // The events are counted only now, when they are certain to be delivered: the lease may be lost while `permits`
  // waits.
  count.add(fits);
  return fits;
}
