/** The refusal of a change to something that has changed since it was read. */
import type { TSchema } from "typebox";
import { encode, type Value } from "../../core/schema/codec.ts";
import type { Administration, Organization } from "../../core/store/directory.ts";
import { ManagementError } from "./error.ts";

/** `what` begins the sentence. `current` is the state that the change would have overwritten. */
export function stale<Schema extends TSchema>(
  what: string,
  { read, last = "" }: { read: number | undefined; last?: string },
  schema: Schema,
  current: Value<Schema> & { version: number },
): never {
  return conflict(
    `${what} has version ${current.version} now, not ${read}: it changed since you read it, and you would overwrite that.${last}`,
    schema,
    current,
  );
}

export function conflict<Schema extends TSchema>(message: string, schema: Schema, current: Value<Schema>): never {
  throw new ManagementError(message, "version_conflict", {
    body: { current: encode<TSchema>(schema, current) as Record<string, unknown> },
  });
}

/** A sentence about the last change and its actor. */
export async function lastChange(
  { listAudit }: Pick<Administration, "listAudit">,
  { id, subject = id }: Pick<Organization, "id"> & { subject?: string },
): Promise<string> {
  const [last] = await listAudit({ organizationId: id, subject, limit: 1 });
  return last ? ` The last change was ${last.action} by ${last.actor}, at ${last.at.toISOString()}.` : "";
}

/** The message for a change before which somebody else made one; `differences` are in words. */
export const overtaken = (what: string, differences: readonly string[]) =>
  `Somebody else has changed this ${what} meanwhile: ${differences.join(", ")}. Nothing was changed. Look at it again, and repeat your change if it is still right.`;
