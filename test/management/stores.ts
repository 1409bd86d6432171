/** The stores of the verbs, on a database. */
import type { ManagementStores } from "../../src/management/context.ts";
import { administrationStores } from "../../src/postgres/administration.ts";
import type { Database } from "../../src/postgres/database.ts";
import { ledger } from "../../src/postgres/ledger.ts";
import { refusedRequests } from "../../src/postgres/refused.ts";

export function managementStores(db: Database, book = ledger(db, { recovery: "checkpoint" })): ManagementStores {
  return { ...administrationStores(db), ledger: book, refused: refusedRequests(db) };
}
