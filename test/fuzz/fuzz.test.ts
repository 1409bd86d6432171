// Runs every fuzzer briefly, with a new seed each time; a failure names the seed. For longer runs, use `npm run fuzz`.

import { describe, expect, test } from "bun:test";
import { seed } from "../harness/depth.ts";
import { fuzzers } from "./all.ts";
import { fuzzOnce } from "./fuzzer.ts";

const inputs = 300;

describe.each(fuzzers.map((fuzzer) => [fuzzer.name, fuzzer] as const))("%s", (_name, fuzzer) => {
  test("holds for a few hundred inputs of a new seed", () => {
    expect({ seed, found: fuzzOnce(fuzzer, seed, inputs) }).toEqual({ seed, found: [] });
  });
});
