// The nodes and commands that a test starts live for seconds, and would spend a third of their CPU on optimizing code that
// they hardly run.

/** Variables of Bun's engine: JavaScript, and the WebAssembly of an embedded database, are optimized later. */
export const shortLived: Record<string, string> = {
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeSoon: "20000",
  BUN_JSC_thresholdForOMGOptimizeAfterWarmUp: "5000000",
};
