// Every fuzzer; `npm run fuzz` and fuzz.test.ts run this list.

import { bodyScanFuzzer } from "./body-scan.ts";
import type { Fuzzer } from "./fuzzer.ts";

export const fuzzers: readonly Fuzzer[] = [bodyScanFuzzer];
