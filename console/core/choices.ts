import type { TSchema } from "typebox";
import { type VerbName, verbs } from "../../src/management/verbs.ts";
import { snakeName } from "../../src/schema/codec.ts";

/** The values that a verb takes as this member of its input. The build puts them in the place of the call (verb-table.ts). */
export function choicesOf(verbName: VerbName, member: string): string[] {
  const verb = verbs.find(({ name }) => name === verbName);
  const properties = (verb?.input as { properties?: Record<string, TSchema & { enum?: string[] }> })?.properties ?? {};
  const found = Object.entries(properties).find(([name]) => snakeName(name) === member)?.[1].enum;
  if (!found) throw new Error(`The verb ${verbName} has no choices for ${member}.`);
  return found;
}
