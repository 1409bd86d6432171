// Loaded before the tests: properties that name no seed are tried with the run's, so that a second run finds again what the
// first found.
import fc from "fast-check";
import { seed } from "./depth.ts";

fc.configureGlobal({ seed });
