/**
 * Administration over SQL. Each act and its audit entry are one transaction, in which the nodes' caches are told too: the
 * message leaves with the commit, never without it.
 */
import type { Administration } from "../store/directory.ts";
import { listAudit } from "./acts.ts";
import type { Database } from "./database.ts";
import { keys } from "./keys.ts";
import { organizations } from "./organizations.ts";
import { teams } from "./teams.ts";

export function administration(db: Database): Administration {
  return { ...organizations(db), ...keys(db), ...teams(db), listAudit: (input) => listAudit(db, input) };
}
