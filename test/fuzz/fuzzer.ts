// What a fuzzer is: properties that hold for every input. `npm run fuzz` looks for minutes or hours, `npm test` for a moment.

import fc from "fast-check";

export interface Fuzzer {
  /** The name by which the fuzzer is asked for: `npm run fuzz -- body-scan`. */
  name: string;
  /** The key is the sentence that says what must hold; the value is the property that tries it. */
  properties: Record<string, fc.IProperty<never>>;
}

export interface Found {
  property: string;
  /** fast-check's own words: the counterexample, shrunk, and why it is one. */
  report: string;
}

/** Tries each property with this many inputs, drawn from a seed. */
export function fuzzOnce({ properties }: Fuzzer, seed: number, inputs: number): Found[] {
  return Object.entries(properties).flatMap(([property, law]) => {
    const details = fc.check(law as fc.IProperty<unknown>, { seed, numRuns: inputs });
    return details.failed ? [{ property, report: fc.defaultReportMessage(details as never) ?? "" }] : [];
  });
}

/** A property whose type hides its inputs, so that properties of different inputs fit into one list. */
export function law<Input extends [unknown, ...unknown[]]>(
  ...words: [...inputs: { [Index in keyof Input]: fc.Arbitrary<Input[Index]> }, holds: (...input: Input) => void]
): fc.IProperty<never> {
  return fc.property(...(words as unknown as Parameters<typeof fc.property>)) as unknown as fc.IProperty<never>;
}

/** Throws unless the two values have the same JSON. */
export function same(got: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`got ${one}, wanted ${other}`);
}
