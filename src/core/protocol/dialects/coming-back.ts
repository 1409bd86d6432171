/**
 * Decides which opaque values (carried.ts) are sent back to an engine: only those that an engine of its dialect made
 * for the same model. Pure.
 */
import type { Carried } from "../carried.ts";
import type { CarriedField, Dialect } from "../dialect.ts";

/** The field in which an opaque value is sent back; undefined if this engine must not get it. */
export function fieldFor(carried: Carried, model: string, { mark, carries }: Dialect): CarriedField | undefined {
  if (carried.by !== mark || carried.model !== model) return undefined;
  return carries.find(
    ({ kind, path }) => path.join(".") === carried.field && (kind === "call") === "callId" in carried,
  );
}
