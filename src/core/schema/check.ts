/** A check of values against a schema, compiled at its first use, so that a start compiles none. */
import type { TSchema } from "typebox";
import { Build, type EvaluateResult } from "typebox/schema";

export function checkOf(schema: TSchema): (value: unknown) => boolean {
  let compiled: EvaluateResult | null = null;
  return (value) => {
    // `Build` is used without `Compile`, which would also keep the source text of its functions in memory: a fifteenth
    // of all objects in an idle node.
    compiled ??= Build(schema).Evaluate();
    return compiled.Check(value);
  };
}
