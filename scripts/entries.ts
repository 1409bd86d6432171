/**
 * The entry files from which the executable is built. They keep their paths below src: a worker is started as
 * "./core/tokens/worker.ts".
 */
export const entries: readonly string[] = [
  "src/main.ts",
  "src/core/tokens/worker.ts",
  "src/stores/postgres/embedded-worker.ts",
];
