/**
 * COMPACTION: nothing of the answer is delivered, or counted, before the model begins its summary; if it writes
 * none, the request has failed. If an engine finds the conversation too long, the engine is asked again with a shorter
 * one: docs/design/protocols.md, Compaction.
 */
import { noSummary } from "../../core/inference/compaction.ts";
import { type InferenceEvent, isTerminal, type TerminalEvent } from "../../core/inference/event.ts";
import type { Fault } from "../../core/inference/fault.ts";
import { type AttemptRequest, initialProgress } from "../../core/usage/record.ts";
import { AskingAgain, type Batch, type Next, type Open } from "./asking-again.ts";
import { leaveOut } from "./leaving-out.ts";

/** How often a conversation may be shortened for an engine. After that, at most a sixteenth of it is left. */
const shortenings_max = 4;
/**
 * How many events may be held back before the first word of a summary. After more reasoning than this, the summary is
 * given up.
 */
const held_events_max = 262_144;
const held_chars_max = 4 * 1024 * 1024;
/**
 * The share of the context that a shortened conversation may fill if the engine reported the input's length. The rest
 * is a margin, because the lengths of single turns are estimated.
 */
const margin = 0.9;
const half = 0.5;

export class Compacting extends AskingAgain {
  /** Whether the caller has received a part of the summary. */
  #isShown = false;

  constructor(open: Open, attemptRequest: AttemptRequest) {
    super(open, attemptRequest, initialProgress());
  }

  async next(): Promise<Next> {
    if (!this.#isShown) return this.#toSummary();
    const next = await this.latest.next();
    // Another engine begins the answer again. The caller has received nothing of it yet.
    return !next.done && isAnew(next.value) ? this.#toSummary() : next;
  }

  async #toSummary(): Promise<Next> {
    for (let shortenings = 0; ; shortenings++) {
      const { said, end } = await this.#untilSaid();
      if (end === "left") return { done: true, value: undefined };
      if (end === null) {
        this.#isShown = true;
        return { done: false, value: said.map((event) => this.#marked(event)) };
      }
      if (end.type === "response-end") return this.#failed(noSummary());
      if (shortenings === shortenings_max || !this.#isShortened(end.fault)) return this.#failed(end.fault);
    }
  }

  /** The events up to the summary's first words, or up to the end if there are none or the caller has left. */
  async #untilSaid(): Promise<{ said: Batch; end: TerminalEvent | "left" | null }> {
    const said: Batch = [];
    const texts = new Set<number>();
    let chars = 0;
    for (;;) {
      const { done, value } = await this.latest.next();
      if (done) return { said, end: "left" };
      if (isAnew(value)) {
        said.length = 0;
        texts.clear();
      }
      said.push(...value);
      for (const event of value) {
        if (event.type === "part-delta") chars += event.delta.length;
        if (event.type === "part-start" && event.part.kind === "text") texts.add(event.index);
        if (event.type === "part-delta" && texts.has(event.index) && /\S/.test(event.delta)) return { said, end: null };
        if (isTerminal(event)) return { said, end: event };
      }
      if (said.length > held_events_max || chars > held_chars_max) {
        await this.latest.return();
        return { said, end: { type: "response-failed", fault: noSummary() } };
      }
    }
  }

  /**
   * Shortens the conversation after the engine found it too long. Returns whether the engine may now be asked again.
   */
  #isShortened({ code, details: { overflow } }: Fault): boolean {
    const { asked, signal } = this.attemptRequest;
    const { request, model, inputTokens, inputBytes } = asked;
    if (code !== "context_length_exceeded" || this.isOver || signal.aborted) return false;
    const counted = overflow?.inputTokens ?? 0;
    const share = leaveOut(request, counted > model.contextTokens ? (margin * model.contextTokens) / counted : half);
    if (share === 1) return false;
    this.progress.inputShare *= share;
    const shortened: AttemptRequest = {
      ...this.attemptRequest,
      asked: {
        ...asked,
        own: null,
        inputTokens: Math.ceil(inputTokens * this.progress.inputShare),
        inputBytes: Math.ceil(inputBytes * this.progress.inputShare),
      },
    };
    this.latest = this.open(shortened, this.progress).events;
    return true;
  }

  #marked(event: InferenceEvent): InferenceEvent {
    const { leftOutTurns = 0 } = this.attemptRequest.asked.request.compaction ?? {};
    return event.type === "response-start" && leftOutTurns > 0 ? { ...event, leftOutTurns } : event;
  }

  #failed(fault: Fault): Next {
    this.#isShown = true;
    return { done: false, value: [{ type: "response-failed", fault }] };
  }
}

function isAnew([first]: Batch): boolean {
  return first?.type === "response-start";
}
