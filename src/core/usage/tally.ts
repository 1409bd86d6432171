/**
 * The count of one stream: the engine's report if one is believed (report.ts), else a count of what was forwarded
 * (output-calibration.ts), corrected at the end by a tokenizer. The meter asks what a batch would bring the count to
 * before it forwards the batch, and then adds the batch.
 */
import type { AnswerPart } from "../inference/answer-part.ts";
import type { InferenceEvent } from "../inference/event.ts";
import { isTerminal, type TerminalEvent } from "../inference/terminal.ts";
import type { RejectedReport, ReportFlaw, Usage } from "../inference/usage.ts";
import { AnswerText } from "./answer-text.ts";
import { Forwarded } from "./forwarded.ts";
import type { RouteCalibration } from "./output-calibration.ts";
import { type RawReport, rejectionOf } from "./report.ts";

/** Answers with fewer tokens teach nothing. */
const tokens_taught_min = 64;

type Batch = readonly InferenceEvent[];

/**
 * Counts with the model's tokenizer, off the main thread, the tokens that no engine reports. A method returns null if
 * it cannot count.
 */
export interface Counting {
  prompt(): Promise<number> | null;
  answer(parts: readonly AnswerPart[]): Promise<AnswerTokens> | null;
  /** Called when an answer begins that will be counted, so that the tokenizer is loaded in time. */
  begun(): void;
  /** Reserves memory for this many more bytes of the answer's text. False if there is no room. */
  keeps(bytes: number): boolean;
}

export interface AnswerTokens {
  tokens: number;
  reasoningTokens: number;
}

export interface TallyParts {
  contextTokens: number;
  /** The request's output cap, or the model's if that is less. */
  outputTokensCap: number;
  /** The input tokens that are charged if no report of them is believed. */
  inputTokensExpected: number;
  /** The calibration of the route that answers. Called once, after the first part has begun. */
  calibration(): RouteCalibration;
  /** Null if the model's tokenizer is not known. */
  counting: Counting | null;
}

export class Tally {
  readonly #parts: TallyParts;
  #now: Count;
  /** The count with the batch `#batch` added. It is then swapped with `#now`, so that a batch makes no new object. */
  #next: Count;
  #batch: Batch | null = null;
  /** The text of the answer; null if no tokenizer will count it. */
  #text: AnswerText | null = null;
  #tokenizer: TokenizerCount = {};
  #counting: Promise<void> | null = null;

  constructor(parts: TallyParts) {
    let calibration: RouteCalibration | null = null;
    const calibrationOnce = () => {
      calibration ??= parts.calibration();
      return calibration;
    };
    this.#parts = parts;
    this.#now = new Count(parts, calibrationOnce);
    this.#next = new Count(parts, calibrationOnce);
  }

  /** Whether the engine has reported everything that it produced, and is believed. */
  get reported(): boolean {
    return this.#now.report !== null && this.#now.rejected === null && !this.#now.outgrown;
  }

  /** The last report, if it was not believed. */
  get rejected(): RejectedReport | null {
    return this.#now.rejected;
  }

  get anyPart(): boolean {
    return this.#now.forwarded.parts > 0;
  }

  get anyOutput(): boolean {
    return this.#now.forwarded.deltas > 0;
  }

  /** The output tokens that the count would reach with this batch. */
  outputTokensWith(batch: Batch): number {
    return this.#countWith(batch).outputTokens;
  }

  /** Counts a batch. Returns the event that ends the stream, if the batch holds it. */
  add(batch: Batch): TerminalEvent | undefined {
    const isFirst = !this.anyPart;
    const next = this.#countWith(batch);
    this.#next = this.#now;
    this.#now = next;
    this.#batch = null;
    if (isFirst && this.anyPart) this.#text = this.#textToKeep();
    if (this.#text) for (const event of batch) this.#text.add(event);
    return next.terminal;
  }

  usage(): Usage {
    return this.#now.usage(this.#tokenizer);
  }

  /** Lets a tokenizer count, once, what no believed report covers. Null if there is nothing to count. Never rejects. */
  counted(): Promise<void> | null {
    const { counting } = this.#parts;
    if (this.#counting || !counting) return this.#counting;
    const text = this.anyOutput && !this.#now.isOutputReported ? this.#text : null;
    const share = text?.share ?? null;
    const prompt = this.#now.isInputExpected ? counting.prompt() : null;
    // If no part of the text could be kept, the estimate is charged.
    const answer = text && share !== null ? counting.answer(text.parts) : null;
    if (!prompt && !answer) return null;
    this.#counting = Promise.allSettled([
      prompt?.then((tokens) => {
        this.#tokenizer.inputTokens = tokens;
      }),
      answer?.then((tokens) => this.#outputCounted(tokens, share!)),
    ]).then(() => {});
    return this.#counting;
  }

  /** The events that end the stream if a window is used up: the ends of open parts, the usage, and the end. */
  cutShort(): InferenceEvent[] {
    const parts = this.#now.forwarded.open.map((index): InferenceEvent => ({ type: "part-end", index }));
    return [...parts, { type: "usage", usage: this.usage() }, { type: "response-end", reason: "length" }];
  }

  /** Teaches the calibration from a complete answer. */
  calibrate(): void {
    const now = this.#now;
    if (!this.anyOutput) return;
    const calibration = now.calibration();
    if (!now.isOutputReported) calibration.missed();
    else if (!now.rejected) calibration.reported();
    const { streamed, whole } = now.forwarded;
    if (now.isAllText) calibration.observe({ tokens: now.sentTokens, streamed, whole });
  }

  /** The reported tokens of the forwarded part ÷ our count of it; null if either is missing. */
  divergence(): number | null {
    const now = this.#now;
    return now.isFinal && now.isReadable && now.countedTokens > 0 ? now.sentTokens / now.countedTokens : null;
  }

  #textToKeep(): AnswerText | null {
    const { counting } = this.#parts;
    if (!counting || this.#now.calibration().isReporting) return null;
    counting.begun();
    return new AnswerText((bytes) => counting.keeps(bytes));
  }

  /** Takes a tokenizer's count. `share`: the size of the whole answer ÷ that of the part that was counted. */
  #outputCounted({ tokens, reasoningTokens }: AnswerTokens, share: number): void {
    const outputTokens = Math.round(tokens * share);
    const { streamed, whole } = this.#now.forwarded;
    this.#tokenizer.outputTokens = outputTokens;
    this.#tokenizer.reasoningTokens = Math.round(reasoningTokens * share);
    if (outputTokens >= tokens_taught_min)
      this.#now.calibration().observeCount({ tokens: outputTokens, streamed, whole });
  }

  #countWith(batch: Batch): Count {
    if (this.#batch !== batch) {
      this.#next.copyFrom(this.#now);
      this.#next.add(batch);
      this.#batch = batch;
    }
    return this.#next;
  }
}

/** A tokenizer's count, as far as it has come. */
interface TokenizerCount {
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
}

/** The flaws of reports whose numbers say nothing. */
const unreadable: ReadonlySet<ReportFlaw> = new Set<ReportFlaw>(["malformed", "missing", "part_above_whole"]);

/** The state of the count after some batches. */
class Count {
  readonly forwarded = new Forwarded();
  report: Usage | null = null;
  rejected: RejectedReport | null = null;
  /** Whether there was output after the last report: some engines report only at the start. */
  outgrown = false;
  terminal: TerminalEvent | undefined;
  /** The tokens of the forwarded part. They never fall, even if a part turns out to be streamed. */
  countedTokens = 0;
  /** The most output tokens that a believed report has named since the output began. */
  #reportedTokens = 0;
  readonly #parts: TallyParts;
  readonly calibration: () => RouteCalibration;

  constructor(parts: TallyParts, calibration: () => RouteCalibration) {
    this.#parts = parts;
    this.calibration = calibration;
  }

  /** Becomes a copy of `other` without making an object. */
  copyFrom(other: Count): void {
    this.forwarded.copyFrom(other.forwarded);
    this.report = other.report;
    this.rejected = other.rejected;
    this.outgrown = other.outgrown;
    this.terminal = other.terminal;
    this.countedTokens = other.countedTokens;
    this.#reportedTokens = other.#reportedTokens;
  }

  /** Counts events up to the one that ends the stream. */
  add(batch: Batch): void {
    for (const event of batch) {
      if (event.type === "usage") this.#addReport(event);
      else if (event.type === "part-delta") this.outgrown = this.report !== null;
      this.forwarded.add(event);
      if (isTerminal(event)) {
        this.terminal = event;
        break;
      }
    }
    this.#count();
  }

  /** Whether the engine has reported the whole answer, believed or not. */
  get isFinal(): boolean {
    return this.report !== null && this.terminal?.type === "response-end" && !this.outgrown;
  }

  /** Whether the reported output is a number. */
  get isReadable(): boolean {
    return this.rejected?.output === undefined || !unreadable.has(this.rejected.output);
  }

  /**
   * Whether the reported tokens are those of the text alone. Marks of calls and of reasoning are not part of it, and
   * weigh most in a short answer.
   */
  get isAllText(): boolean {
    if (!this.isOutputReported || this.rejected) return false;
    const { report, terminal, forwarded } = this;
    const isWhole = terminal?.type === "response-end" && terminal.reason === "stop";
    return isWhole && forwarded.isPlain && report!.reasoningTokens === 0 && report!.outputTokens >= tokens_taught_min;
  }

  /** The part of the reported output that had deltas. */
  get sentTokens(): number {
    const { outputTokens, reasoningTokens } = this.report!;
    return outputTokens - (this.forwarded.reasoningDeltas === 0 ? reasoningTokens : 0);
  }

  get outputTokens(): number {
    return this.#outputTokens(this.countedTokens);
  }

  /** Whether the engine's report of the output is used. */
  get isOutputReported(): boolean {
    return this.isFinal && !this.rejected?.output;
  }

  /** Whether the estimated input is charged, because no report of it was believed. */
  get isInputExpected(): boolean {
    return (this.report === null || this.rejected?.input !== undefined) && this.#parts.inputTokensExpected > 0;
  }

  usage(tokenizer: TokenizerCount): Usage {
    const { report, rejected, forwarded } = this;
    if (report && !rejected && this.isFinal) return report;
    const input = rejected?.input ? null : report;
    const output = rejected?.output ? null : report;
    const outputTokens = this.#outputTokens(tokenizer.outputTokens ?? this.countedTokens);
    const reasoningTokens = Math.max(
      output?.reasoningTokens ?? 0,
      tokenizer.reasoningTokens ?? forwarded.reasoningDeltas,
    );
    const isInputCounted = !this.isInputExpected || tokenizer.inputTokens !== undefined;
    const isOutputCounted =
      tokenizer.outputTokens !== undefined || outputTokens === forwarded.deltas || this.isOutputReported;
    return {
      inputTokens: input?.inputTokens ?? tokenizer.inputTokens ?? this.#parts.inputTokensExpected,
      cachedInputTokens: input?.cachedInputTokens ?? 0,
      cacheWriteTokens: input?.cacheWriteTokens ?? 0,
      outputTokens,
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
      source: isInputCounted && isOutputCounted ? "counted" : "estimated",
    };
  }

  /** The output tokens to charge. `counted`: our count, which is used where the engine's report is not. */
  #outputTokens(counted: number): number {
    const reported = this.report && !this.rejected?.output ? this.report.outputTokens : null;
    if (reported !== null && this.isFinal) return reported;
    return Math.max(reported ?? 0, counted);
  }

  #count(): void {
    if (this.forwarded.deltas === 0) return;
    this.countedTokens = Math.max(this.countedTokens, this.calibration().tokens(this.forwarded));
  }

  #addReport(report: RawReport): void {
    this.#count();
    const { contextTokens, outputTokensCap } = this.#parts;
    const { deltas, codeUnits } = this.forwarded;
    this.rejected = rejectionOf(report, {
      contextTokens,
      outputTokensCap,
      deltas,
      codeUnits,
      countedTokens: this.countedTokens,
      reportedTokens: this.#reportedTokens,
    });
    this.report = report.usage;
    this.outgrown = false;
    if (deltas > 0 && !this.rejected?.output) this.#reportedTokens = report.usage.outputTokens;
  }
}
