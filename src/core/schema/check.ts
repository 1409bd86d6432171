/** A check of values against a schema, compiled when it is first needed: a start compiles none. */
import type { TSchema } from "typebox";
import { Build, type EvaluateResult } from "typebox/schema";

export function checkOf(schema: TSchema): (value: unknown) => boolean {
  let compiled: EvaluateResult | null = null;
  return (value) => {
    // `Compile` would keep the pieces of its functions' text as well, a fifteenth of all values of a node at rest.
    compiled ??= Build(schema).Evaluate();
    return compiled.Check(value);
  };
}
