// The other half of test/histories/one.test.ts.

import { testHalf } from "./halves.ts";

testHalf("second");
