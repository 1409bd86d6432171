/** Creates the stores that the verbs use, on a database. */
import type { ManagementStores } from "../../../src/admin/management/context.ts";
import { administrationStores } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";

export function managementStores(db: Database, book = ledger(db, { recovery: "checkpoint" })): ManagementStores {
  return { ...administrationStores(db), ledger: book, refused: refusedRequests(db) };
}
