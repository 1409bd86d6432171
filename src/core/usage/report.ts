/**
 * The count of an answer's tokens so far, and whether an engine's report is accepted in its place. A report that cannot
 * be true is rejected; its input and its output are judged separately. The table of rules is in docs/metering.md. Pure.
 */
import { type InferenceEvent, isTerminal, type TerminalEvent } from "../inference/event.ts";
import {
  promptTokens,
  type RejectedReport,
  type ReportFlaw,
  type ReportFlaws,
  type Usage,
} from "../inference/usage.ts";
import { Forwarded } from "./forwarded.ts";
import type { RouteCalibration } from "./output-calibration.ts";

/** A usage report as the engine sent it. `rejected` names the values that are not token counts. */
export interface RawReport {
  usage: Usage;
  rejected?: RejectedReport | undefined;
}

/** The facts about the answer when the report arrived. */
export interface Facts {
  contextTokens: number;
  /** The most output that was asked for: the request's cap or the model's, whichever is less. */
  outputTokensCap: number;
  deltas: number;
  codeUnits: number;
  countedTokens: number;
  /** The most output tokens that a believed report has named since the first delta. */
  reportedTokens: number;
}

/**
 * The bounds beyond which a report is too low to be honest. Engines may send a delta for each character, and a token of
 * prose has four to five characters. No tokenizer averages more than sixteen code units a token. Twice these numbers
 * are allowed.
 */
export const deltas_per_token_max = 8;
export const code_units_per_token_max = 32;

/** The report with its flaws, if it is rejected; null if it is accepted. */
export function rejectionOf({ usage, rejected }: RawReport, facts: Facts): RejectedReport | null {
  const input = rejected?.input ?? inputFlaw(usage, facts);
  const output = rejected?.output ?? outputFlaw(usage, facts);
  if (!input && !output) return null;
  const flaws: ReportFlaws = {};
  if (input) flaws.input = input;
  if (output) flaws.output = output;
  return { ...flaws, said: rejected?.said ?? reportedIn(usage) };
}

/**
 * The flaw in the reported input tokens, or null. A report above our estimate may be honest, because of images and
 * templates; a report above the model's context is not.
 */
function inputFlaw(usage: Usage, { contextTokens }: Facts): ReportFlaw | null {
  return promptTokens(usage) > contextTokens ? "above_context" : null;
}

/**
 * The flaw in the reported output tokens, or null. A report above our count may be honest, up to the cap, because of
 * reasoning that is not sent.
 */
function outputFlaw({ outputTokens }: Usage, facts: Facts): ReportFlaw | null {
  const { deltas, codeUnits, countedTokens } = facts;
  // An engine may exceed its cap, if the forwarded output shows it.
  if (outputTokens > Math.max(facts.outputTokensCap, countedTokens)) return "above_cap";
  const least = codeUnits === 0 ? 0 : Math.max(1, deltas / deltas_per_token_max, codeUnits / code_units_per_token_max);
  if (outputTokens < least) return "below_forwarded";
  return outputTokens < facts.reportedTokens ? "decreasing" : null;
}

function reportedIn(usage: Usage): RejectedReport["said"] {
  return {
    prompt_tokens: promptTokens(usage),
    cached_tokens: usage.cachedInputTokens,
    written_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
  };
}

export interface CountParts {
  contextTokens: number;
  outputTokensCap: number;
  /** The input tokens that are charged if no report of them is believed. */
  inputTokensExpected: number;
}

/** The calibration learns nothing from answers with fewer tokens than this. */
export const tokens_taught_min = 64;

export interface TokenizerCount {
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
}

/** The flaws of reports whose numbers cannot be used at all. */
const unreadable: ReadonlySet<ReportFlaw> = new Set<ReportFlaw>(["malformed", "missing", "part_above_whole"]);

export class Count {
  readonly forwarded = new Forwarded();
  report: Usage | null = null;
  rejected: RejectedReport | null = null;
  /** Whether there was output after the last report: some engines report only at the start. */
  outgrown = false;
  terminal: TerminalEvent | undefined;
  /**
   * Our count of the tokens in the forwarded part. It never falls, even if a part that seemed to have arrived whole
   * turns out to be streamed.
   */
  countedTokens = 0;
  #reportedTokens = 0;
  readonly #parts: CountParts;
  readonly calibration: () => RouteCalibration;

  constructor(parts: CountParts, calibration: () => RouteCalibration) {
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
  add(batch: readonly InferenceEvent[]): void {
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
   * Whether the reported tokens are those of the text alone. The special tokens that mark calls and reasoning are not
   * part of the text, and weigh most in a short answer.
   */
  get isAllText(): boolean {
    if (!this.isOutputReported || this.rejected) return false;
    const { report, terminal, forwarded } = this;
    const isWhole = terminal?.type === "response-end" && terminal.reason === "stop";
    return isWhole && forwarded.isPlain && report!.reasoningTokens === 0 && report!.outputTokens >= tokens_taught_min;
  }

  /** The part of the reported output tokens that arrived in deltas. */
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

  /** The output tokens to charge. `counted`: our count, which is used if the engine's report is not. */
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
