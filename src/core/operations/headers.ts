/** The names of the headers of answers. src/features/openapi/headers.ts describes them. */
const limited = ["requests", "tokens"];
const parts = ["limit", "remaining", "reset"];
export const usageHeaderNames = ["session", "week", "month"].flatMap((window) =>
  ["percent", "reset-at"].map((part) => `x-service-usage-${window}-${part}`),
);
export const limitHeaderNames = limited.flatMap((what) => parts.map((part) => `x-ratelimit-${part}-${what}`));
export const messagesLimitHeaderNames = limited.flatMap((what) =>
  parts.map((part) => `anthropic-ratelimit-${what}-${part}`),
);
export const retirementHeaderNames = ["deprecation", "sunset", "link"];

/** The headers of an answer to an inference request, without those of limits per minute. */
export const inferenceHeaderNames = [
  ...usageHeaderNames,
  "x-service-usage-source",
  "x-service-replay-of",
  ...retirementHeaderNames,
];
/** The headers of an inference 429: those of usage windows and of limits per minute. */
export const limitRefusalHeaderNames = [...usageHeaderNames, ...limitHeaderNames];
export const responsesLimitRefusalHeaderNames = [...limitRefusalHeaderNames, "x-codex-promo-message"];
export const messagesLimitRefusalHeaderNames = [...usageHeaderNames, ...messagesLimitHeaderNames];
const unified = (name: string) => `anthropic-ratelimit-unified-${name}`;
export const unifiedOverage = ["reset", "utilization", "surpassed-threshold", "period", "disabled-reason"];
/** The headers that inform Claude Code about its limits when it is signed in to this service. */
export const unifiedHeaderNames = [
  "status",
  "representative-claim",
  "reset",
  "overage-status",
  "overage-utilization",
  "overage-surpassed-threshold",
  "overage-reset",
].map(unified);
export const unifiedRefusalHeaderNames = ["status", "reset", ...unifiedOverage.map((name) => `overage-${name}`)].map(
  unified,
);
