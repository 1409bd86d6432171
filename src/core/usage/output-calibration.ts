/**
 * Counts the tokens of an answer before its engine reports: by its deltas, or by its text, whichever gives more. A part
 * that arrived whole has one delta, and is counted by its text alone. Each route learns for itself, because two engines
 * of one model may cut an answer differently: docs/design/usage.md, Counting tokens. A delta is one `part-delta` event,
 * in whatever frames the engine sent it.
 */
import type { OutputSums } from "../store/calibration.ts";
import { type Amount, codeUnitsOf, type Script, scripts, type Units } from "./forwarded.ts";
import { type Kept, type Learned, learned, learned_max } from "./input-estimate.ts";

interface Sent {
  streamed: Readonly<Amount>;
  whole: Readonly<Amount>;
}

export type Observed = Sent & { tokens: number };

export interface OutputCalibration {
  of(route: string): RouteCalibration;
  sums: Kept<OutputSums>;
}

/** The calibration of one route: the class without its private fields. */
export type RouteCalibration = Pick<LearnedCalibration, keyof LearnedCalibration>;

export function routeName({ upstream, model }: { upstream: { name: string }; model: string }): string {
  return `${upstream.name}/${model}`;
}

/** The tokens after which older observations have faded, so that a change of the engine is learned. */
const tokens_remembered = 200_000;
/** Sums above this are not accepted. */
const sum_max = 1e9;
/**
 * With fewer tokens per delta than this, a route counts as one that sends one token in each delta: the first number is
 * for Latin text, the second for other scripts. The first is above 1, because the special tokens that end an answer
 * have no delta. The second is larger, because a character of other scripts may be several tokens, of which only the
 * last one has the delta.
 */
const tokens_per_single_delta_max = 1.05;
const tokens_per_wide_delta_max = 3;
/**
 * If a larger share than this of an answer's deltas is in other scripts, the tokens per delta of Latin text are not
 * learned from the answer.
 */
const wide_share_max = 0.1;
/**
 * On a route with one token in each delta, counting the deltas is exact. But if the text is longer by this factor than
 * the deltas explain, several tokens were sent together, and the tokens are counted by the text. The factor is this
 * large because prose has half again as many code units per token as code, and a route may have learned from either.
 */
const text_per_deltas_max = 1.5;
/** The text must also exceed the deltas by this many tokens, because a few deltas prove little. */
const text_beyond_deltas_max = 2;

const nothing: OutputSums = Object.freeze({ tokens: 0, deltas: 0, codeUnits: 0, textTokens: 0, textCodeUnits: 0 });

interface RoutesLearned {
  reported: Learned<OutputSums>;
  counted: Learned<OutputSums>;
  /** The sums in use: those learned from reports, or else those learned from a tokenizer's counts. */
  used: Pick<Learned<OutputSums>, "get">;
  /** The routes whose answers came with the engine's usage report, and the routes whose answers came without. */
  reporting: Set<string>;
  silent: Set<string>;
}

export function outputCalibration(): OutputCalibration {
  const all: RoutesLearned = {
    reported: learned(learned_max, isPlausible),
    counted: learned(learned_max, isPlausible),
    used: { get: (name) => all.reported.get(name) ?? all.counted.get(name) },
    reporting: new Set(),
    silent: new Set(),
  };
  // A calibration has no state of its own, and is requested for each batch. So each route's object is made once.
  const known = new Map<string, LearnedCalibration>();
  return {
    of(route) {
      const calibration = known.get(route) ?? new LearnedCalibration(all, route);
      if (known.size > learned_max) known.clear();
      known.set(route, calibration);
      return calibration;
    },
    sums: all.reported,
  };
}

/** A class, because closures would be made again for each answer (docs/design/runtime.md, Memory). */
class LearnedCalibration {
  readonly #all: RoutesLearned;
  readonly #route: string;
  readonly #names: Names;

  constructor(all: RoutesLearned, route: string) {
    this.#all = all;
    this.#route = route;
    this.#names = namesOf(route);
  }

  /** The estimated tokens of what was sent. */
  tokens({ streamed, whole }: Sent): number {
    return this.#streamedTokens(streamed) + Math.max(whole.deltas, Math.round(this.#textTokens(whole)));
  }

  /** Records that an engine has reported the tokens of a complete answer. */
  reported(): void {
    const { reporting, silent } = this.#all;
    silent.delete(this.#route);
    // A Set keeps the order of insertion, so the first route is the one that has not reported for longest.
    reporting.delete(this.#route);
    reporting.add(this.#route);
    if (reporting.size > learned_max) reporting.delete(reporting.keys().next().value!);
  }

  /** Learns from an engine's report of a complete answer, all of whose tokens were forwarded. */
  observe(observed: Observed): void {
    this.#learn(this.#all.reported, observed);
  }

  /**
   * Learns from a tokenizer's count instead of a report. The values learned from counts are used until an engine has
   * reported, and are not saved.
   */
  observeCount(observed: Observed): void {
    this.#learn(this.#all.counted, observed);
  }

  /** Records that a complete answer came without a report. */
  missed(): void {
    const { silent } = this.#all;
    if (silent.size < learned_max) silent.add(this.#route);
  }

  /** Whether the route's answers usually come with a report. */
  get isReporting(): boolean {
    const { reported, reporting, silent } = this.#all;
    const route = this.#route;
    return !silent.has(route) && (reporting.has(route) || (reported.get(route)?.tokens ?? 0) > 0);
  }

  #learn(from: Learned<OutputSums>, { tokens, streamed, whole }: Observed): void {
    const all = { ...streamed };
    for (const script of scripts) all[script] += whole[script];
    if (!isPlausibleText(all, tokens)) return;
    learnText(from, this.#names, all, tokens);
    if (whole.deltas > 0) return;
    const units = codeUnitsOf(streamed);
    const { deltas, cjkDeltas, otherDeltas } = streamed;
    const wideDeltas = cjkDeltas + otherDeltas;
    if (wideDeltas <= deltas * wide_share_max) {
      this.#learnDeltas(from, this.#route, { tokens, deltas, units });
      return;
    }
    const wideTokens = tokens - (deltas - wideDeltas);
    for (const [name, own] of this.#wide(streamed)) {
      const share = own / wideDeltas;
      if (share > wide_share_max) this.#learnDeltas(from, name, { tokens: wideTokens * share, deltas: own, units });
    }
  }

  #learnDeltas(from: Learned<OutputSums>, name: string, some: { tokens: number; deltas: number; units: number }): void {
    const known = from.get(name) ?? nothing;
    const fade = known.tokens > tokens_remembered ? 0.5 : 1;
    const sums = {
      ...nothing,
      tokens: known.tokens * fade + some.tokens,
      deltas: known.deltas * fade + some.deltas,
      codeUnits: known.codeUnits * fade + some.units,
    };
    if (isPlausible(sums)) from.learn(name, sums);
  }

  /** For each script other than Latin, the name under which its ratio was learned, and the number of its deltas. */
  #wide({ cjkDeltas, otherDeltas }: Pick<Amount, "cjkDeltas" | "otherDeltas">): [name: string, deltas: number][] {
    return [
      [this.#names.cjkDeltas, cjkDeltas],
      [this.#names.otherDeltas, otherDeltas],
    ];
  }

  #tokensPerDelta(name: string): number | null {
    const { tokens, deltas } = this.#all.used.get(name) ?? nothing;
    return tokens > 0 ? tokens / deltas : null;
  }

  #textTokens(amount: Amount): number {
    return textTokens(this.#all.used, this.#names, amount);
  }

  #streamedTokens(amount: Amount): number {
    const byText = Math.ceil(this.#textTokens(amount));
    const perDelta = this.#tokensPerDelta(this.#route) ?? 1;
    // The tokens of one delta of Latin text: less than 1 if deltas are smaller than tokens, such as single characters.
    const perLatinDelta = Math.min(perDelta, 1);
    let isSingle = perDelta <= tokens_per_single_delta_max;
    let tokens = amount.deltas * perLatinDelta;
    const isLatin = amount.cjkDeltas + amount.otherDeltas === 0;
    for (const [name, deltas] of isLatin ? [] : this.#wide(amount)) {
      if (deltas === 0) continue;
      const perWideDelta = this.#tokensPerDelta(name) ?? perLatinDelta;
      isSingle &&= perWideDelta <= tokens_per_wide_delta_max;
      tokens += deltas * (perWideDelta - perLatinDelta);
    }
    const byDeltas = Math.ceil(tokens);
    const tolerated = byDeltas * text_per_deltas_max + text_beyond_deltas_max;
    const isExact = isSingle && byText <= tolerated;
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

/**
 * Tokens per code unit for each script: the value before the first report, and the bounds. The ratio of a script on a
 * route is learned from complete answers whose tokens are all in their text. One answer moves it by at most a tenth, and
 * never beyond what a vocabulary can have, so that a wrong or odd report does little: docs/design/usage.md, Counting
 * tokens.
 */
const ratios: Record<Script, { first: number; min: number; max: number }> = {
  latin: { first: 1 / 4, min: 1 / 8, max: 1 / 1 },
  cjk: { first: 1 / 1.4, min: 1 / 3, max: 1 / 0.4 },
  other: { first: 1 / 2.5, min: 1 / 8, max: 1 / 0.3 },
};
/** The largest step by which one answer moves a ratio, as a fraction of the ratio. */
const step_max = 0.1;
/** An answer with fewer tokens than this in a script teaches nothing about that script. */
const tokens_min = 64;

type Sums = Pick<Learned<OutputSums>, "get" | "learn">;

/** The names under which the sums of a route's scripts are stored, beside the sums of whole routes. */
type Names = Readonly<Record<Script | "cjkDeltas" | "otherDeltas", string>>;

function namesOf(route: string): Names {
  const [cjkDeltas, otherDeltas] = [`${route} (cjk deltas)`, `${route} (other deltas)`];
  return { latin: `${route} (latin)`, cjk: `${route} (cjk)`, other: `${route} (other)`, cjkDeltas, otherDeltas };
}

/** Estimates how many tokens a text has from its code units. Most texts have one script. */
function textTokens(sums: Pick<Sums, "get">, names: Names, units: Units): number {
  let tokens = 0;
  for (const script of scripts) if (units[script] !== 0) tokens += units[script] * ratioOf(sums, names[script], script);
  return tokens;
}

function isPlausibleText(units: Units, tokens: number): boolean {
  const bound = (which: "min" | "max") =>
    scripts.reduce((sum, script) => sum + units[script] * ratios[script][which], 0);
  // The end of an answer adds a few special tokens.
  return tokens <= bound("max") + 2 && tokens >= bound("min");
}

/**
 * Learns from a text with a known number of tokens. The tokens are divided among the text's scripts, in proportion to
 * the number that is expected for each script.
 */
function learnText(sums: Sums, names: Names, units: Units, tokens: number): void {
  const factor = tokens / textTokens(sums, names, units);
  const shares = scripts.map((script) => units[script] * ratioOf(sums, names[script], script) * factor);
  for (const [at, script] of scripts.entries())
    if (shares[at]! >= tokens_min) learnScript(sums, names[script], script, units[script], shares[at]!);
}

function learnScript(sums: Sums, name: string, script: Script, codeUnits: number, tokens: number): void {
  const { first, min, max } = ratios[script];
  const { textTokens: before, textCodeUnits: unitsBefore } = sums.get(name) ?? nothing;
  const fade = before > tokens_remembered ? 0.5 : 1;
  const ratio = unitsBefore > 0 ? before / unitsBefore : first;
  const units = unitsBefore * fade + codeUnits;
  const mean = (before * fade + tokens) / units;
  const next = within(within(mean, ratio * (1 - step_max), ratio * (1 + step_max)), min, max);
  // If `step_max` limited the change, the ratio is not a mean yet. The ratio gets only this answer's weight, so that
  // the next answer can move it further.
  const weight = next === mean ? units : codeUnits;
  sums.learn(name, { ...nothing, textTokens: next * weight, textCodeUnits: weight });
}

function ratioOf(sums: Pick<Sums, "get">, name: string, script: Script): number {
  const { textTokens: tokens, textCodeUnits: units } = sums.get(name) ?? nothing;
  const { first, min, max } = ratios[script];
  return units > 0 ? within(tokens / units, min, max) : first;
}

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
