// A process that admits and settles requests on an embedded ledger until it is killed, and writes the ids of confirmed
// requests to its standard output.

import { writeSync } from "node:fs";
import { migrate } from "../../../db/migrate.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { Admit } from "../../../src/core/store/ledger.ts";
import { embeddedDatabase } from "../../../src/stores/postgres/embedded.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { admitOf, settleOf } from "./ledger-stores.ts";

const [folder, organization] = process.argv.slice(2) as [string, string];
const db = await embeddedDatabase(folder);
await migrate(db);
await db.query(
  "insert into organization (id, slug, name, anchor_at) values ($1, 'crash', 'Crash', '2026-01-31') on conflict do nothing",
  [uuidOf(organization, "org_")],
);
const book = ledger(db, { recovery: "checkpoint" });
let before: Admit[] = [];
while (true) {
  const admits = Array.from({ length: 4 }, () => admitOf(organization));
  await book.run([...admits, ...before.map((one) => settleOf(one, 7))]);
  const said = { granted: admits.map((one) => one.requestId), settled: before.map((one) => one.requestId) };
  writeSync(1, `${JSON.stringify(said)}\n`);
  before = admits;
}
