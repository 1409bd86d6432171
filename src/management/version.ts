/** Changes of what somebody has read before: what the version that he read is for. */
import type { Administration, Organization } from "../store/directory.ts";
import { units_max } from "../store/ledger.ts";
import { ManagementError } from "./error.ts";
import * as parse from "./parse.ts";

/** What the caller has read: the change is refused if it has changed since. */
export interface Versioned {
  version?: number | null;
}

export function versionIn({ version }: Versioned): number | null {
  return parse.isAbsent(version) ? null : parse.count(version, units_max, "The version");
}

/** `what`: in words, as a sentence begins. */
export function stale(
  what: string,
  { now, read, current, last = "" }: { now: number; read: number; current: ManagementError["current"]; last?: string },
): never {
  throw new ManagementError(
    `${what} has version ${now} now, not ${read}: it changed since you read it, and you would overwrite that.${last}`,
    "stale",
    current,
  );
}

/** Who changed it last, as a sentence after others. */
export async function lastChange(
  { listAudit }: Pick<Administration, "listAudit">,
  { id, subject = id }: Pick<Organization, "id"> & { subject?: string },
): Promise<string> {
  const [last] = await listAudit({ organizationId: id, subject, limit: 1 });
  return last ? ` The last change was ${last.action} by ${last.actor}, at ${last.at.toISOString()}.` : "";
}
