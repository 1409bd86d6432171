// One half of the histories (simulated runs) that test/histories/halves.ts describes.

import { testHalf } from "./halves.ts";

testHalf("first");
