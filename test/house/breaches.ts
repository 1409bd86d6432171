/** Imports against the walls that stood when the walls were built. A line may only be taken off. */
export const knownBreaches: readonly string[] = [
  "src/core/operations/adapter.ts -> features/responses",
  "src/core/operations/answer.ts -> features/responses",
  "src/core/operations/chat.ts -> features/responses",
  "src/core/operations/dependencies.ts -> features/responses",
  "src/core/operations/infer.ts -> features/responses",
  "src/core/operations/inference-body.ts -> features/responses",
  "src/core/operations/messages.ts -> features/responses",
  "src/core/operations/prepare.ts -> features/responses",
  "src/core/operations/responses.ts -> features/responses",
  "src/core/operations/token-count.ts -> features/responses",
];
