// The interface of a fuzzer: properties that hold for every input. `npm run fuzz` searches for minutes or hours, `npm
// test` briefly.

import fc from "fast-check";

export interface Fuzzer {
  /** The name of the fuzzer on the command line: `npm run fuzz -- body-scan`. */
  name: string;
  /** The key is a sentence that says what must hold; the value is the fast-check property that tests it. */
  properties: Record<string, fc.IProperty<never>>;
}

export interface Found {
  property: string;
  /** The report of fast-check: the shrunk counterexample, and the error. */
  report: string;
}

/** Tests each property with this many inputs, which are generated from the seed. */
export function fuzzOnce({ properties }: Fuzzer, seed: number, inputs: number): Found[] {
  return Object.entries(properties).flatMap(([property, law]) => {
    const details = fc.check(law as fc.IProperty<unknown>, { seed, numRuns: inputs });
    return details.failed ? [{ property, report: fc.defaultReportMessage(details as never) ?? "" }] : [];
  });
}

/**
 * Creates a fast-check property whose type hides its inputs, so that properties of different inputs fit into one list.
 */
export function law<Input extends [unknown, ...unknown[]]>(
  ...words: [...inputs: { [Index in keyof Input]: fc.Arbitrary<Input[Index]> }, holds: (...input: Input) => void]
): fc.IProperty<never> {
  return fc.property(...(words as unknown as Parameters<typeof fc.property>)) as unknown as fc.IProperty<never>;
}

/** Throws unless both values have the same JSON text. */
export function same(got: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`got ${one}, wanted ${other}`);
}
