/**
 * Counts the tokens of an answer before its engine reports: by its deltas, or by its text (text-ratio.ts), whichever is more.
 * A part that arrived whole has one delta, and is counted by its text alone. Each route learns for itself, because two engines
 * of one model may cut an answer differently: docs/design/usage.md, Counting tokens. A delta is one `part-delta` of the centre,
 * whatever frames it came in.
 */

import type { OutputSums } from "../store/calibration.ts";
import { type Amount, codeUnitsOf } from "./forwarded.ts";
import { type Kept, type Learned, learned, learned_max } from "./learned.ts";
import { scripts } from "./script.ts";
import { isPlausibleText, learnText, textTokens } from "./text-ratio.ts";

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
  /** An engine has reported a complete answer. */
  reported(): void;
  /** Learns from an engine's report of a complete answer whose tokens are all in what was sent. */
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

/** Older observations fade, so that a change of the engine is learned. */
const tokens_remembered = 200_000;
/** The largest value that a fading sum can reach. */
const sum_max = 1e9;
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

const nothing: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, textTokens: 0, textCodeUnits: 0 });

/** The learned sums of all routes. */
interface RoutesLearned {
  reported: Learned<OutputSums>;
  counted: Learned<OutputSums>;
  /** Routes with answers that came with a report, and without one. */
  reporting: Set<string>;
  silent: Set<string>;
}

export function outputCalibration(): OutputCalibration {
  const all: RoutesLearned = {
    reported: learned(learned_max, isPlausible),
    counted: learned(learned_max, isPlausible),
    reporting: new Set(),
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
    return this.#streamedTokens(sums, streamed) + Math.max(whole.deltas, Math.round(this.#textTokens(whole)));
  }

  reported(): void {
    const { reporting, silent } = this.#all;
    silent.delete(this.#route);
    if (reporting.size < learned_max) reporting.add(this.#route);
  }

  observe(observed: Observed): void {
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
    const { reported, reporting, silent } = this.#all;
    const route = this.#route;
    return !silent.has(route) && (reporting.has(route) || (reported.get(route)?.tokens ?? 0) > 0);
  }

  #learn(from: Learned<OutputSums>, { tokens, streamed, whole }: Observed): void {
    const units = { ...streamed };
    for (const script of scripts) units[script] += whole[script];
    if (!isPlausibleText(units, tokens)) return;
    learnText(from, this.#route, units, tokens);
    if (whole.deltas > 0) return;
    const known = from.get(this.#route) ?? nothing;
    const fade = known.tokens > tokens_remembered ? 0.5 : 1;
    const sums = {
      ...nothing,
      tokens: known.tokens * fade + tokens,
      deltas: known.deltas * fade + streamed.deltas,
      codeUnits: known.codeUnits * fade + codeUnitsOf(streamed),
    };
    if (isPlausible(sums)) from.learn(this.#route, sums);
  }

  #textTokens(amount: Amount): number {
    const { reported, counted } = this.#all;
    return textTokens({ get: (name) => reported.get(name) ?? counted.get(name) }, this.#route, amount);
  }

  #streamedTokens(known: OutputSums, amount: Amount): number {
    const { deltas } = amount;
    const byText = Math.ceil(this.#textTokens(amount));
    const perDelta = known.tokens > 0 ? known.tokens / known.deltas : 1;
    // If a delta is less than a token, such as one character, this many deltas make a token.
    const byDeltas = perDelta < 1 ? Math.ceil(deltas * perDelta) : deltas;
    const tolerated = byDeltas * text_per_deltas_max + text_beyond_deltas_max;
    const isExact = perDelta <= tokens_per_single_delta_max && byText <= tolerated;
    return isExact ? byDeltas : Math.max(byDeltas, byText);
  }
}

function isPlausible({ tokens, deltas, codeUnits, textTokens: text, textCodeUnits: textUnits }: OutputSums): boolean {
  const isStreamed = isCount(tokens) && isCount(codeUnits) && isCount(deltas) && tokens <= codeUnits * 4;
  const isNone = tokens === 0 && deltas === 0 && codeUnits === 0;
  const isText = isCount(text) && isCount(textUnits);
  const isNoText = text === 0 && textUnits === 0;
  return (isStreamed || isNone) && (isText || isNoText) && !(isNone && isNoText);
}

function isCount(sum: number): boolean {
  return sum >= 1 && sum <= sum_max;
}
