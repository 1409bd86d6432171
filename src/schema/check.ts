/** A check of values against a schema, compiled when it is first needed: a start compiles none. */
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

export function checkOf(schema: TSchema): (value: unknown) => boolean {
  let compiled: ReturnType<typeof Compile> | null = null;
  return (value) => {
    compiled ??= Compile(schema);
    return compiled.Check(value);
  };
}
