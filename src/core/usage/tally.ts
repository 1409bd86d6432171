/**
 * The count of one stream's tokens: the engine's usage report if one is believed (report.ts), else a count of what was
 * forwarded (output-calibration.ts), corrected at the end by a tokenizer. The meter asks what a batch would bring the
 * count to before it forwards the batch, and then adds the batch.
 */
import type { AnswerPart, InferenceEvent, TerminalEvent } from "../inference/event.ts";
import type { RejectedReport, Usage } from "../inference/usage.ts";
import { AnswerText } from "./answer-text.ts";
import type { RouteCalibration } from "./output-calibration.ts";
import { Count, type CountParts, type TokenizerCount, tokens_taught_min } from "./report.ts";

type Batch = readonly InferenceEvent[];

/**
 * The model's tokenizer, off the main thread, for one request: counts the tokens that no engine reports. `prompt`
 * returns null if it cannot count.
 */
export interface Tokenizing {
  /** Whether `prompt` can count the prompt. If not, the memory of the request can be released before the answer ends. */
  readonly hasPrompt: boolean;
  prompt(): Promise<number> | null;
  answer(parts: readonly AnswerPart[]): Promise<AnswerTokens>;
}

export interface AnswerTokens {
  tokens: number;
  reasoningTokens: number;
}

export interface TallyParts extends CountParts {
  /** The calibration of the route that answers. Called once, after the first part has begun. */
  calibration(): RouteCalibration;
  /** Null: the model's tokenizer is not known. */
  tokenizing: Tokenizing | null;
  /** Reserves memory for this many more bytes of the answer's text. False if there is no room. */
  keepsText(bytes: number): boolean;
}

export class Tally {
  readonly #parts: TallyParts;
  #now: Count;
  /**
   * The count after `#batch` is added to `#now`. The two objects are then swapped, so that a batch makes no new object.
   */
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

  /** Whether the engine's report covers everything that it produced, and is accepted. */
  get reported(): boolean {
    return this.#now.report !== null && this.#now.rejected === null && !this.#now.outgrown;
  }

  get rejected(): RejectedReport | null {
    return this.#now.rejected;
  }

  get anyPart(): boolean {
    return this.#now.forwarded.parts > 0;
  }

  get anyOutput(): boolean {
    return this.#now.forwarded.deltas > 0;
  }

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

  /**
   * Lets a tokenizer count, once, the tokens that no believed report covers. Null if there is nothing to count. Never
   * rejects.
   */
  counted(): Promise<void> | null {
    const { tokenizing } = this.#parts;
    if (this.#counting || !tokenizing) return this.#counting;
    const text = this.anyOutput && !this.#now.isOutputReported ? this.#text : null;
    const share = text?.share ?? null;
    const prompt = this.#now.isInputExpected ? tokenizing.prompt() : null;
    // If no part of the text could be kept, the estimate is charged.
    const answer = text && share !== null ? tokenizing.answer(text.parts) : null;
    if (!prompt && !answer) return null;
    this.#counting = Promise.allSettled([
      prompt?.then((tokens) => {
        this.#tokenizer.inputTokens = tokens;
      }),
      answer?.then((tokens) => this.#outputCounted(tokens, share!)),
    ]).then(() => {});
    return this.#counting;
  }

  /** The events that end the stream if a usage window is used up: the ends of open parts, the usage, and the end. */
  cutShort(): InferenceEvent[] {
    const parts = this.#now.forwarded.open.map((index): InferenceEvent => ({ type: "part-end", index }));
    return [...parts, { type: "usage", usage: this.usage() }, { type: "response-end", reason: "length" }];
  }

  calibrate(): void {
    const now = this.#now;
    if (!this.anyOutput) return;
    const calibration = now.calibration();
    if (!now.isOutputReported) calibration.missed();
    else if (!now.rejected) calibration.reported();
    const { streamed, whole } = now.forwarded;
    if (now.isAllText) calibration.observe({ tokens: now.sentTokens, streamed, whole });
  }

  /** The reported tokens of the forwarded part ÷ our count of these tokens; null if either is missing. */
  divergence(): number | null {
    const now = this.#now;
    return now.isFinal && now.isReadable && now.countedTokens > 0 ? now.sentTokens / now.countedTokens : null;
  }

  #textToKeep(): AnswerText | null {
    const { tokenizing } = this.#parts;
    if (!tokenizing || this.#now.calibration().isReporting) return null;
    // An empty count loads the tokenizer in time.
    void tokenizing.answer([]).catch(() => {});
    return new AnswerText((bytes) => this.#parts.keepsText(bytes));
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
