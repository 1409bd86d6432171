// The processes that a test starts live for seconds, and would spend a third of their CPU on optimizing code that they
// hardly run. These variables of Bun's engine let JavaScript and WebAssembly wait longer for that. What lives long enough
// is optimized all the same.

/** WebAssembly: a database that is embedded in this process, and opened anew by each test. */
export const patientDatabase: Record<string, string> = {
  BUN_JSC_thresholdForOMGOptimizeAfterWarmUp: "5000000",
};

/** A node, or a command. */
export const shortLived: Record<string, string> = {
  ...patientDatabase,
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeSoon: "20000",
};
