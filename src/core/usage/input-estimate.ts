/**
 * Estimates the tokens of an input from its bytes: an upper estimate, by which a hold is sized, and a middle one, which
 * is charged if no engine reports. It never runs a tokenizer over an agent-sized body. Each model has its own ratio,
 * learned from its engine's reports: docs/design/usage.md, The input estimate.
 */
import { type Media, mediaOf } from "../inference/media.ts";
import type { Model } from "../inference/model.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { promptTokens, type Usage } from "../inference/usage.ts";
import type { InputRatio } from "../store/calibration.ts";

/**
 * The most models or routes whose learned values are kept in one memory, and the most rows that are read at a start.
 * With a larger catalog, some are forgotten and learned again.
 */
export const learned_max = 1000;

/** The part of a memory of learned values that is needed to save and restore it. */
export interface Kept<Known> {
  /** Takes in a stored value if it is plausible. A value that this process learned itself is kept instead. */
  recall(name: string, known: Known): void;
  /** Returns what was learned since the last call. A second call returns none of it. */
  changes(): Map<string, Known>;
  /** Counts these entries as changed again, because they could not be saved. */
  unwritten(names: Iterable<string>): void;
}

/**
 * A bounded memory of what was learned about models or routes, by name. It knows which entries were learned since it
 * was last saved. Saving is done elsewhere (src/features/upkeep/calibration-saver.ts), and learning never waits.
 */
export interface Learned<Known> extends Kept<Known> {
  get(name: string): Known | undefined;
  /** Learns an entry. If there are too many, the one that was learned longest ago is dropped. */
  learn(name: string, known: Known): void;
}

export function learned<Known>(names_max: number, isPlausible: (known: Known) => boolean): Learned<Known> {
  const all = new Map<string, Known>();
  const changed = new Set<string>();

  function forget(name: string): void {
    all.delete(name);
    changed.delete(name);
  }

  return {
    get: (name) => all.get(name),
    learn(name, known) {
      all.delete(name);
      if (all.size >= names_max) forget(all.keys().next().value!);
      all.set(name, known);
      changed.add(name);
    },
    recall(name, known) {
      if (all.has(name) || all.size >= names_max || !isPlausible(known)) return;
      all.set(name, known);
    },
    changes() {
      const found = new Map([...changed].map((name) => [name, all.get(name)!]));
      changed.clear();
      return found;
    },
    unwritten(unkept) {
      for (const name of unkept) if (all.has(name)) changed.add(name);
    },
  };
}

export interface InputEstimate {
  /** The upper estimate of the input's tokens, at least 1. `bodyBytes` is the size of the whole body, decompressed. */
  tokens(model: Pick<Model, "id">, request: InferenceRequest, bodyBytes: number, media?: Media): number;
  /**
   * Bounds an estimate by that of a model about which nothing was learned. Refusals use this bound, so that texts of one
   * organization, from which the model's estimate has learned, refuse no other organization's request.
   */
  unlearned(tokens: number, bodyBytes: number, media: Media): number;
  /** The middle estimate of the input's tokens, at least 1. */
  expected(model: Pick<Model, "id">, media: Media, bodyBytes: number): number;
  /**
   * Learns from an engine's report of this input, or from a tokenizer's count. An input with media teaches nothing
   * about text.
   */
  observe(model: Pick<Model, "id">, bodyBytes: number, media: Pick<Media, "bytes">, usage: Usage): void;
  ratios: Kept<InputRatio>;
}

const estimateSettings = {
  /** Tokens per byte before the first report: one token for three bytes, which is more than prose or code has. */
  ratio_initial: 1 / 3,
  models_max: learned_max,
};

/**
 * Tokens per byte of most texts, for the middle estimate before the first report. Holds use the larger `ratio_initial`.
 */
const ratioExpected = 1 / 4;
/**
 * The bytes of a body around its text (names, model, settings), which no engine counts. In a greeting they are the
 * larger part.
 */
const frameBytes = 96;
/** The tokens that a chat template adds, before the first report: the maximum of nearly all models, and the average. */
const templateTokens_upper = 16;
const templateTokens = 8;
/** The most tokens that can be learned for a template, with the system prompts that engines add. */
const templateTokens_max = 1024;
/**
 * Inputs with less text than this teach how many tokens the template adds. One report moves the learned number by a
 * quarter of its distance from the report, 64 tokens at most.
 */
const smallBytes_max = 512;
const templateWeight = 1 / 4;
const templateDistance_max = 256;

/**
 * The bounds of a learned ratio of tokens to bytes, whatever an engine reports. Text has more than the least, escaped as
 * `\u0430` too: an engine that reports less did not read all of it, such as a schema or earlier reasoning.
 */
const ratio_min = 1 / 24;
const ratio_max = 1.5;
/** The weight of one report in the moving mean of the spread (how far the ratios of inputs differ). */
const weight = 1 / 16;
/**
 * The ratio is learned from about this many recent reports, with older ones weighted less. No single input outweighs
 * the others.
 */
const reports_remembered = 256;
/**
 * The weight of `ratioExpected` against the reports, in bytes of input, so that a very short input changes the ratio
 * little.
 */
const expectedBytes = 1024;

function isPlausible({ ratio, spread, bytes, template }: InputRatio): boolean {
  const isRatio = ratio >= ratio_min && ratio <= ratio_max && spread >= 0 && spread <= ratio_max;
  return isRatio && bytes > 0 && bytes < 1e15 && template >= 0 && template <= templateTokens_max;
}

export function inputEstimate(settings = estimateSettings): InputEstimate {
  const models = learned(settings.models_max, isPlausible);

  return {
    tokens({ id }, request, bodyBytes, media = mediaOf(request)) {
      const known = models.get(id);
      const ratio = known ? Math.min(ratio_max, known.ratio + 2 * known.spread) : settings.ratio_initial;
      return upperTokens(ratio, known?.template ?? 0, bodyBytes, media);
    },
    unlearned(tokens, bodyBytes, media) {
      return Math.min(tokens, upperTokens(settings.ratio_initial, 0, bodyBytes, media));
    },
    expected({ id }, media, bodyBytes) {
      const { ratio, template } = models.get(id) ?? unknown;
      return Math.max(1, Math.round(textBytes(bodyBytes - media.bytes) * ratio + template) + media.tokens);
    },
    observe({ id }, bodyBytes, media, usage) {
      const tokens = promptTokens(usage);
      if (usage.source === "estimated" || media.bytes > 0 || !(bodyBytes > 0) || !(tokens > 0)) return;
      models.learn(id, learnedFrom(models.get(id) ?? unknown, tokens, textBytes(bodyBytes)));
    },
    ratios: models,
  };
}

const unknown: InputRatio = Object.freeze({ ratio: ratioExpected, spread: 0, bytes: 0, template: templateTokens });

function upperTokens(ratio: number, template: number, bodyBytes: number, media: Media): number {
  const text = Math.max(0, bodyBytes - media.bytes);
  return Math.max(1, Math.ceil(text * ratio) + media.tokens + Math.max(templateTokens_upper, Math.ceil(template)));
}

const textBytes = (bytes: number) => Math.max(0, bytes - frameBytes);

/** The ratio after another report. `text`: the bytes of the input without the frame around its text. */
function learnedFrom({ ratio, spread, bytes, template }: InputRatio, tokens: number, text: number): InputRatio {
  const isFirst = bytes === 0;
  const before = isFirst ? expectedBytes : bytes * (1 - 1 / reports_remembered);
  const more = Math.max(1, isFirst ? text : Math.min(text, before));
  const seen = within(ratio_min, (tokens - template) / Math.max(1, text), ratio_max);
  // One token more or less changes the ratio of a short text much. So the deviation of a short text has little weight
  // in the spread.
  const apart = Math.abs(seen - ratio) * Math.min(1, text / expectedBytes);
  const distance = within(-templateDistance_max, tokens - ratio * text - template, templateDistance_max);
  const mean = (ratio * before + seen * more) / (before + more);
  return {
    ratio: mean,
    spread: isFirst ? mean / 4 : spread + (apart - spread) * weight,
    bytes: before + more,
    template: text > smallBytes_max ? template : within(0, template + distance * templateWeight, templateTokens_max),
  };
}

function within(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
