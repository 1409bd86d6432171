// The other half of the histories that test/histories/halves.ts describes.

import { testHalf } from "./halves.ts";

testHalf("second");
