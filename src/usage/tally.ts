/**
 * The count of one stream: the engine's report where there is one that is believed (report.ts), else what was forwarded
 * (output-calibration.ts), and at its end what a tokenizer says of that. A batch is looked at before it is forwarded, and
 * counted when it is.
 */
import type { AnswerPart } from "../inference/answer-part.ts";
import type { InferenceEvent } from "../inference/event.ts";
import type { RejectedReport, ReportFlaw, Usage } from "../inference/usage.ts";
import { AnswerText } from "./answer-text.ts";
import { Forwarded } from "./forwarded.ts";
import type { RouteCalibration } from "./output-calibration.ts";
import { type RawReport, rejectionOf } from "./report.ts";

type Batch = readonly InferenceEvent[];

/** Counts with the model's tokenizer, off the thread, what no engine reports; null where it cannot. */
export interface Counting {
  prompt(): Promise<number> | null;
  answer(parts: readonly AnswerPart[]): Promise<AnswerTokens> | null;
  /** An answer has begun that is to be counted: by its end, whoever counts is ready. */
  begun(): void;
  /** Whether so many bytes more of the answer may be kept for it. */
  keeps(bytes: number): boolean;
}

export interface AnswerTokens {
  tokens: number;
  reasoningTokens: number;
}

export interface TallyParts {
  contextTokens: number;
  /** The most output that was asked for. */
  outputTokensCap: number;
  /** What the input is charged as where no report of it is believed. */
  inputTokensExpected: number;
  /** The calibration of the route that answers; not asked for before the first part. */
  readonly calibration: RouteCalibration;
  /** Null where the model's tokenizer is not known. */
  counting: Counting | null;
}

export function tally(of: TallyParts): Tally {
  return new Tally(of);
}

export class Tally {
  readonly #of: TallyParts;
  #now: Count;
  /** The last batch that was looked at, and the count with it. */
  #looked: { batch: Batch; count: Count } | null = null;
  /** Null where no tokenizer will count it. */
  #text: AnswerText | null = null;
  #counted: Counted = {};
  #counting: Promise<void> | null = null;

  constructor(of: TallyParts) {
    this.#of = of;
    this.#now = new Count(of);
  }

  /** Whether the engine has reported all that it has produced, and is believed. */
  get reported(): boolean {
    return this.#now.report !== null && this.#now.rejected === null && !this.#now.outgrown;
  }

  /** Of the last report, where it is not taken as it is. */
  get rejected(): RejectedReport | null {
    return this.#now.rejected;
  }

  get anyPart(): boolean {
    return this.#now.forwarded.parts > 0;
  }

  get anyOutput(): boolean {
    return this.#now.forwarded.deltas > 0;
  }

  producesOutput(batch: Batch): boolean {
    return batch.some(isDelta);
  }

  /** What the count would be with this batch. */
  outputTokensWith(batch: Batch): number {
    return this.#countWith(batch).outputTokens;
  }

  /** Counts a batch; answers the event that ends the stream, where the batch holds it. */
  add(batch: Batch): InferenceEvent | undefined {
    const isFirst = !this.anyPart;
    this.#now = this.#countWith(batch);
    this.#looked = null;
    if (isFirst && this.anyPart) this.#text = this.#textToKeep();
    if (this.#text) for (const event of batch) this.#text.add(event);
    return this.#now.terminal;
  }

  usage(): Usage {
    return this.#now.usage(this.#counted);
  }

  /** Has a tokenizer count what no report is believed of, once. Null: there is nothing to wait for. Never rejects. */
  counted(): Promise<void> | null {
    const { counting } = this.#of;
    if (this.#counting || !counting) return this.#counting;
    const prompt = this.#now.isInputExpected ? counting.prompt() : null;
    const answer = this.#text && !this.#now.isOutputSaid && this.anyOutput ? counting.answer(this.#text.parts) : null;
    if (!prompt && !answer) return null;
    this.#counting = Promise.all([
      prompt?.then((tokens) => this.#inputCounted(tokens)).catch(uncounted),
      answer?.then((tokens) => this.#outputCounted(tokens)).catch(uncounted),
    ]).then(() => {});
    return this.#counting;
  }

  /** The end that a window sets: grammatical, with what was forwarded until now. */
  cutShort(): InferenceEvent[] {
    const parts = this.#now.forwarded.open.map((index): InferenceEvent => ({ type: "part-end", index }));
    return [...parts, { type: "usage", usage: this.usage() }, { type: "response-end", reason: "length" }];
  }

  /** Teaches the calibration what a whole answer held. Reasoning that nobody saw has neither deltas nor code units. */
  calibrate(): void {
    const now = this.#now;
    if (!this.anyOutput) return;
    const { streamed, whole } = now.forwarded;
    if (!now.isOutputSaid) this.#of.calibration.missed();
    else if (!now.rejected) this.#of.calibration.observe({ tokens: now.sentTokens, streamed, whole });
  }

  /** What the engine reported of all that was shown ÷ our count of it; null where either is missing. */
  divergence(): number | null {
    const now = this.#now;
    return now.isFinal && now.isRead && now.countedTokens > 0 ? now.sentTokens / now.countedTokens : null;
  }

  #textToKeep(): AnswerText | null {
    const { counting, calibration } = this.#of;
    if (!counting || calibration.isReporting) return null;
    counting.begun();
    return new AnswerText((bytes) => counting.keeps(bytes));
  }

  #inputCounted(tokens: number): void {
    this.#counted.inputTokens = tokens;
  }

  #outputCounted({ tokens, reasoningTokens }: AnswerTokens): void {
    const share = this.#text?.share ?? 1;
    const { streamed, whole } = this.#now.forwarded;
    this.#counted.outputTokens = Math.round(tokens * share);
    this.#counted.reasoningTokens = Math.round(reasoningTokens * share);
    this.#of.calibration.observeCount({ tokens: this.#counted.outputTokens, streamed, whole });
  }

  #countWith(batch: Batch): Count {
    if (this.#looked?.batch !== batch) this.#looked = { batch, count: this.#now.with(batch) };
    return this.#looked.count;
  }
}

/** The count of a tokenizer. */
interface Counted {
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
}

/** An answer that cannot be counted stays as it was estimated. */
function uncounted(): void {}

const isDelta = ({ type }: InferenceEvent) => type === "part-delta";
const isUnread: ReadonlySet<ReportFlaw> = new Set<ReportFlaw>(["malformed", "missing", "part_above_whole"]);

/** The count after some batches. */
class Count {
  forwarded = new Forwarded();
  report: RawReport["usage"] | null = null;
  rejected: RejectedReport | null = null;
  /** Whether output came after the last report: engines report at their start, and some never again. */
  outgrown = false;
  terminal: InferenceEvent | undefined;
  /** The largest output that was reported and believed since output began. */
  #reportedTokens = 0;
  /** What was forwarded, in tokens. It only rises, also where a part turns out to be streamed. */
  countedTokens = 0;

  constructor(readonly of: TallyParts) {}

  with(batch: Batch): Count {
    const next = new Count(this.of);
    next.forwarded = this.forwarded.copy();
    next.report = this.report;
    next.rejected = this.rejected;
    next.outgrown = this.outgrown;
    next.#reportedTokens = this.#reportedTokens;
    next.countedTokens = this.countedTokens;
    for (const event of batch) if (next.#add(event)) break;
    next.#count();
    return next;
  }

  /** Whether the engine has reported the whole answer, believed or not. */
  get isFinal(): boolean {
    return this.report !== null && this.terminal?.type === "response-end" && !this.outgrown;
  }

  /** Whether the reported output is a count at all. */
  get isRead(): boolean {
    return this.rejected?.output === undefined || !isUnread.has(this.rejected.output);
  }

  /** Of the reported output, what had deltas. */
  get sentTokens(): number {
    const { outputTokens, reasoningTokens } = this.report!;
    return outputTokens - (this.forwarded.reasoningDeltas === 0 ? reasoningTokens : 0);
  }

  get outputTokens(): number {
    return this.#outputTokens(this.countedTokens);
  }

  /** `ours`: our count, where the engine's does not stand. */
  #outputTokens(ours: number): number {
    const said = this.report && !this.rejected?.output ? this.report.outputTokens : null;
    if (said !== null && this.isFinal) return said;
    return Math.max(said ?? 0, ours);
  }

  get isInputExpected(): boolean {
    return (this.report === null || this.rejected?.input !== undefined) && this.of.inputTokensExpected > 0;
  }

  usage(counted: Counted = {}): Usage {
    const { report, rejected, forwarded } = this;
    if (report && !rejected && this.isFinal) return report;
    const input = rejected?.input ? null : report;
    const reported = rejected?.output ? null : report;
    const outputTokens = this.#outputTokens(counted.outputTokens ?? this.countedTokens);
    const inputTokens = input?.inputTokens ?? counted.inputTokens ?? this.of.inputTokensExpected;
    const isInputCounted = !this.isInputExpected || counted.inputTokens !== undefined;
    const isOutputCounted =
      counted.outputTokens !== undefined || outputTokens === forwarded.deltas || this.isOutputSaid;
    const reasoningTokens = Math.max(
      reported?.reasoningTokens ?? 0,
      counted.reasoningTokens ?? forwarded.reasoningDeltas,
    );
    return {
      inputTokens,
      cachedInputTokens: input?.cachedInputTokens ?? 0,
      cacheWriteTokens: input?.cacheWriteTokens ?? 0,
      outputTokens,
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
      source: isInputCounted && isOutputCounted ? "counted" : "estimated",
    };
  }

  /** Whether the engine's word on the output stands. */
  get isOutputSaid(): boolean {
    return this.isFinal && !this.rejected?.output;
  }

  #count(): void {
    if (this.forwarded.deltas === 0) return;
    this.countedTokens = Math.max(this.countedTokens, this.of.calibration.tokens(this.forwarded));
  }

  /** Answers whether the stream ends here. */
  #add(event: InferenceEvent): boolean {
    if (event.type === "usage") this.#told(event);
    else if (event.type === "part-delta") this.outgrown = this.report !== null;
    else if (event.type === "response-end" || event.type === "response-failed") this.terminal = event;
    this.forwarded.add(event);
    return this.terminal !== undefined;
  }

  #told(told: RawReport): void {
    this.#count();
    const { countedTokens } = this;
    const { contextTokens, outputTokensCap } = this.of;
    const { deltas, codeUnits } = this.forwarded;
    const reportedTokens = this.#reportedTokens;
    const facts = { contextTokens, outputTokensCap, deltas, codeUnits, countedTokens, reportedTokens };
    this.rejected = rejectionOf(told, facts);
    this.report = told.usage;
    this.outgrown = false;
    if (deltas > 0 && !this.rejected?.output) this.#reportedTokens = told.usage.outputTokens;
  }
}
