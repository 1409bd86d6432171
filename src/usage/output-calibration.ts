/**
 * Counts the tokens of an answer before its engine reports: by its deltas, or by its code units and the average code
 * units of a token on its route, whichever is more. A part that arrived whole has one delta, and is counted by its code
 * units alone. Each route learns for itself, because two engines of one model may cut an answer differently:
 * docs/design/usage.md, Counting tokens. A delta is one `part-delta` of the centre, whatever frames it came in. A code
 * unit is one of UTF-16, which a string's length gives at no cost. The ratio is learned in the same measure, so bytes
 * would be no more accurate.
 */

import type { OutputSums } from "../store/calibration.ts";
import type { Amount } from "./forwarded.ts";
import { type Kept, type Learned, learned, learned_max } from "./learned.ts";

/** The forwarded part of an answer. */
export interface Sent {
  streamed: Readonly<Amount>;
  whole: Readonly<Amount>;
}

export type Observed = Sent & { tokens: number };

export interface OutputCalibration {
  /** The calibration of a route, by its name. */
  of(route: string): RouteCalibration;
  /** The sums of each route, to be kept over a restart. */
  sums: Kept<OutputSums>;
}

export interface RouteCalibration {
  /** The tokens of the forwarded part. */
  tokens(sent: Sent): number;
  /** Learns from an engine's report of a complete answer, as far as it concerns what was sent. */
  observe(observed: Observed): void;
  /** The same from a tokenizer's count. It is used until an engine has reported, and is not kept over a restart. */
  observeCount(observed: Observed): void;
  /** A complete answer came without a report. */
  missed(): void;
  /** Whether a report can be expected with the route's answers. */
  readonly isReporting: boolean;
}

export function routeName({ upstream, model }: { upstream: { name: string }; model: string }): string {
  return `${upstream.name}/${model}`;
}

/** The code units of a token before the first report: about those of prose and code. */
export const uncalibrated_code_units_per_token = 4;
const uncalibrated_ratio = 1 / uncalibrated_code_units_per_token;
/** Older observations fade, so that a change of the engine is learned. */
const tokens_remembered = 200_000;
/** The largest value that a fading sum can reach. */
const sum_max = 1e9;
/** No text has more tokens per code unit than this. Most of what is reported beyond it was never sent. */
const tokens_per_code_unit_max = 3;
/**
 * A route with fewer tokens per delta sends one token in each. Marks that end an answer, and halves of characters, have
 * no delta.
 */
const tokens_per_single_delta_max = 1.05;
/**
 * On such a route the deltas are counted, which is exact, unless the text is longer than they explain: then tokens were
 * sent together. Prose has about half as many code units again per token as code, and a route may have learned from
 * either.
 */
const text_per_deltas_max = 1.5;
/** And by at least this many tokens more, because a few deltas prove little. */
const text_beyond_deltas_max = 2;

const nothing: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, wholeTokens: 0, wholeCodeUnits: 0 });

/** The learned sums of all routes. */
interface RoutesLearned {
  reported: Learned<OutputSums>;
  counted: Learned<OutputSums>;
  /** Routes with answers that came without a report. */
  silent: Set<string>;
}

export function outputCalibration(): OutputCalibration {
  const all: RoutesLearned = {
    reported: learned(learned_max, isPlausible),
    counted: learned(learned_max, isPlausible),
    silent: new Set(),
  };
  return { of: (route) => new LearnedCalibration(all, route), sums: all.reported };
}

/** A class: docs/design/runtime.md, Bun as a server. */
class LearnedCalibration implements RouteCalibration {
  readonly #all: RoutesLearned;
  readonly #route: string;

  constructor(all: RoutesLearned, route: string) {
    this.#all = all;
    this.#route = route;
  }

  tokens({ streamed, whole }: Sent): number {
    const { reported, counted } = this.#all;
    const sums = reported.get(this.#route) ?? counted.get(this.#route) ?? nothing;
    return streamedTokens(sums, streamed) + wholeTokens(sums, whole);
  }

  observe(observed: Observed): void {
    this.#all.silent.delete(this.#route);
    this.#learn(this.#all.reported, observed);
  }

  observeCount(observed: Observed): void {
    this.#learn(this.#all.counted, observed);
  }

  missed(): void {
    const { silent } = this.#all;
    if (silent.size < learned_max) silent.add(this.#route);
  }

  get isReporting(): boolean {
    const { reported, silent } = this.#all;
    return !silent.has(this.#route) && (reported.get(this.#route)?.tokens ?? 0) > 0;
  }

  #learn(from: Learned<OutputSums>, observed: Observed): void {
    const sums = withObserved(from.get(this.#route) ?? nothing, observed);
    if (sums) from.learn(this.#route, sums);
  }
}

/** Null if it cannot be true. */
function withObserved(known: OutputSums, { tokens, streamed, whole }: Observed): OutputSums | null {
  const { deltas } = streamed;
  const codeUnits = streamed.codeUnits + whole.codeUnits;
  const seen: OutputSums =
    whole.deltas === 0
      ? { ...nothing, tokens, deltas, codeUnits }
      : { ...nothing, wholeTokens: tokens, wholeCodeUnits: codeUnits };
  if (!isPlausible(seen)) return null;
  const fade = known.tokens > tokens_remembered ? 0.5 : 1;
  const wholeFade = known.wholeTokens > tokens_remembered ? 0.5 : 1;
  return {
    tokens: known.tokens * fade + seen.tokens,
    deltas: known.deltas * fade + seen.deltas,
    codeUnits: known.codeUnits * fade + seen.codeUnits,
    wholeTokens: known.wholeTokens * wholeFade + seen.wholeTokens,
    wholeCodeUnits: known.wholeCodeUnits * wholeFade + seen.wholeCodeUnits,
  };
}

function streamedTokens(known: OutputSums, { deltas, codeUnits }: Amount): number {
  const isKnown = known.tokens > 0;
  const byText = Math.ceil(codeUnits * (isKnown ? known.tokens / known.codeUnits : uncalibrated_ratio));
  const perDelta = isKnown ? known.tokens / known.deltas : 1;
  // If a delta is less than a token, such as one character, this many deltas make a token.
  const byDeltas = perDelta < 1 ? Math.ceil(deltas * perDelta) : deltas;
  const tolerated = byDeltas * text_per_deltas_max + text_beyond_deltas_max;
  const isExact = perDelta <= tokens_per_single_delta_max && byText <= tolerated;
  return isExact ? byDeltas : Math.max(byDeltas, byText);
}

/** The tokens by all known code units of the route: a text has as many tokens however it was sent. */
function wholeTokens(known: OutputSums, { deltas, codeUnits }: Amount): number {
  const tokens = known.tokens + known.wholeTokens;
  const ratio = tokens > 0 ? tokens / (known.codeUnits + known.wholeCodeUnits) : uncalibrated_ratio;
  return Math.max(deltas, Math.round(codeUnits * ratio));
}

function isPlausible({ tokens, deltas, codeUnits, wholeTokens, wholeCodeUnits }: OutputSums): boolean {
  const isStreamed = isRatio(tokens, codeUnits) && deltas >= 1 && deltas <= sum_max;
  const isNone = tokens === 0 && deltas === 0 && codeUnits === 0;
  const isWhole = isRatio(wholeTokens, wholeCodeUnits);
  const isNoneWhole = wholeTokens === 0 && wholeCodeUnits === 0;
  return (isStreamed || isNone) && (isWhole || isNoneWhole) && !(isNone && isNoneWhole);
}

function isRatio(tokens: number, codeUnits: number): boolean {
  return isCount(tokens) && isCount(codeUnits) && tokens <= codeUnits * tokens_per_code_unit_max;
}

function isCount(sum: number): boolean {
  return sum >= 1 && sum <= sum_max;
}
