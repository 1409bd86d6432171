/**
 * How many tokens an input will be, from its bytes: an upper estimate that sizes a hold, and a middle one that is charged
 * where no engine reports; never a tokenizer over an agent-sized body. Each model has a ratio of its own, learned from what
 * its engine reports: docs/design/usage.md, The input estimate.
 */
import { type Media, mediaOf } from "../inference/media.ts";
import type { Model } from "../inference/model.ts";
import type { InferenceRequest } from "../inference/request.ts";
import { promptTokens, type Usage } from "../inference/usage.ts";
import type { InputRatio } from "../store/calibration.ts";
import { type Kept, learned, learned_max } from "./learned.ts";

export interface InputEstimate {
  /** `bodyBytes` is the size of the whole body, decompressed. At least 1. */
  tokens(model: Pick<Model, "id">, request: InferenceRequest, bodyBytes: number): number;
  /** The middle of what it may be, and not the upper end. At least 1. */
  expected(model: Pick<Model, "id">, media: Media, bodyBytes: number): number;
  /** What an engine reported of that input, or a tokenizer counted. With media it teaches nothing about text. */
  observe(model: Pick<Model, "id">, bodyBytes: number, media: Pick<Media, "bytes">, usage: Usage): void;
  /** The ratio of each model, to be kept over a restart. */
  ratios: Kept<InputRatio>;
}

export interface EstimateSettings {
  /** Tokens a byte before the first report: one for three bytes is more than prose or code takes. */
  ratio_initial: number;
  /** Known models at a time; the one that was learned longest ago makes room. */
  models_max: number;
}
export const estimateSettings: EstimateSettings = { ratio_initial: 1 / 3, models_max: learned_max };

/** What a token is of most texts, before the first report; a hold starts from the larger ratio of the settings. */
const ratioExpected = 1 / 4;
/** What a chat template adds around a conversation. */
const envelopeTokens = 16;

/** A learned ratio stays within these, whatever an engine says. */
const ratio_min = 0.02;
const ratio_max = 1.5;
/** How much one report moves the spread. */
const weight = 1 / 16;
/** So many late reports are remembered, and no input among them outweighs the others. */
const reports_remembered = 256;
/** What is expected before the first report weighs as much as an input of so many bytes: a greeting teaches little. */
const expectedBytes = 1024;

function isPlausible({ ratio, spread, bytes }: InputRatio): boolean {
  return ratio >= ratio_min && ratio <= ratio_max && spread >= 0 && spread <= ratio_max && bytes > 0 && bytes < 1e15;
}

export function inputEstimate(settings: EstimateSettings = estimateSettings): InputEstimate {
  const models = learned(settings.models_max, isPlausible);

  return {
    tokens({ id }, request, bodyBytes) {
      const known = models.get(id);
      const ratio = known ? Math.min(ratio_max, known.ratio + 2 * known.spread) : settings.ratio_initial;
      const media = mediaOf(request);
      const text = Math.max(0, bodyBytes - media.bytes);
      return Math.max(1, Math.ceil(text * ratio) + media.tokens + envelopeTokens);
    },
    expected({ id }, media, bodyBytes) {
      const ratio = models.get(id)?.ratio ?? ratioExpected;
      return Math.max(1, Math.round(Math.max(0, bodyBytes - media.bytes) * ratio) + media.tokens);
    },
    observe({ id }, bodyBytes, media, usage) {
      const tokens = promptTokens(usage);
      if (usage.source === "estimated" || media.bytes > 0 || !(bodyBytes > 0) || !(tokens > 0)) return;
      const seen = Math.min(ratio_max, Math.max(ratio_min, tokens / bodyBytes));
      const known = models.get(id) ?? { ratio: ratioExpected, spread: seen / 4, bytes: 0 };
      models.learn(id, learnedFrom(known, seen, bodyBytes));
    },
    ratios: models,
  };
}

function learnedFrom({ ratio, spread, bytes }: InputRatio, seen: number, bodyBytes: number): InputRatio {
  const before = bytes === 0 ? expectedBytes : bytes * (1 - 1 / reports_remembered);
  const more = bytes === 0 ? bodyBytes : Math.min(bodyBytes, before);
  return {
    ratio: (ratio * before + seen * more) / (before + more),
    spread: spread + (bytes === 0 ? 0 : (Math.abs(seen - ratio) - spread) * weight),
    bytes: before + more,
  };
}
