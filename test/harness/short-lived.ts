// Settings for processes that live for seconds. The nodes and commands that tests start would spend a third of their
// CPU time on optimizing code that they hardly run.

/**
 * Environment variables that make Bun's JavaScriptCore optimize JavaScript, and the embedded database's WebAssembly,
 * later.
 */
export const shortLived: Record<string, string> = {
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: "20000",
  BUN_JSC_thresholdForOptimizeSoon: "20000",
  BUN_JSC_thresholdForOMGOptimizeAfterWarmUp: "5000000",
};
