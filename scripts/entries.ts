/**
 * The entry files from which the executable is built. They keep their paths below src: a worker is started as
 * "./features/tokenizers/worker.ts".
 */
export const entries: readonly string[] = [
  "src/main.ts",
  "src/features/tokenizers/worker.ts",
  "src/stores/postgres/embedded-worker.ts",
];
