// Preloaded by the test runner: fast-check properties that name no seed use the seed of the run, so that a second run
// with the same seed repeats the first one's cases.
import fc from "fast-check";
import { seed } from "./depth.ts";

fc.configureGlobal({ seed });
