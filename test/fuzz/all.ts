// The list of all fuzzers, which `npm run fuzz` and fuzz.test.ts run.

import { bodyScanFuzzer } from "./body-scan.ts";
import { catalogFuzzer } from "./catalog.ts";
import type { Fuzzer } from "./fuzzer.ts";
import { keyFuzzer, targetFuzzer } from "./heads.ts";
import { responsesFuzzer } from "./responses.ts";
import { sseFuzzer } from "./sse.ts";
import { upstreamFuzzers } from "./upstream.ts";

export const fuzzers: readonly Fuzzer[] = [
  bodyScanFuzzer,
  sseFuzzer,
  responsesFuzzer,
  keyFuzzer,
  targetFuzzer,
  catalogFuzzer,
  ...upstreamFuzzers,
];
