// Histories that once broke a rule, by their seeds. The first two: a streamed background response was stored, and its
// node died before the end of its log and before the charge. Its key answered `idempotency_answer_lost` for good. The
// third: the client of a ranking left before any engine was asked, and its searches were charged. The fourth: as the
// first, while the lease of the dead node had not lapsed. The fifth: two repeats found a background response of a
// frozen node; one gave it up while the other already followed it, so it seemed to run for ever. The sixth: a replica
// that took the store's place lacked the beginning of a background response that was charged later; its key answered
// `storage_unavailable` for good. The seventh: the admission of a dead node reached the store after its key had been
// given up, and was charged in addition to the repeat. The eighth: a reader that was frozen while a background response
// ended called it lost. The ninth: a sweeper that was frozen since its start first read the store's clock after that
// was set forward, and settled running requests. The last: a node that was frozen past its lease made a settled answer
// a background response, and a repeat found it before its end.

import { test } from "bun:test";
import { manyHistories } from "./many.ts";

test.each([
  1741617338, 330391317, 777028, 812539170, 88485, 951485528, 981660319, 983314166, 984333616, 1017067296, 1047029162,
])("seed %i breaks no rule any more", (seed) => {
  manyHistories(seed, 1);
});
