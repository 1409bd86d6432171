/**
 * The fake rows with which a node is warmed up have the same columns in the same order as the database's rows, because
 * the compiler optimizes code for these.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { noUsage } from "../../src/core/inference/usage.ts";
import type { Command } from "../../src/core/store/ledger.ts";
import { callerOn, grantAll } from "../../src/node/warm-store.ts";
import { directory } from "../../src/stores/postgres/directory.ts";
import { ledger } from "../../src/stores/postgres/ledger.ts";
import { admitOf, newHex, type Store, settleOf, stores } from "../core/store/ledger-stores.ts";

setDefaultTimeout(60_000);

let store: Store;
beforeAll(async () => {
  store = await stores.postgres();
});
afterAll(() => store.close());

/** The names in a value, in their order, without the values. */
function shapeOf(value: unknown): unknown {
  if (value === null || typeof value !== "object" || value instanceof Date || Array.isArray(value)) return null;
  return Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]);
}

test("the caller has the shape of one that the directory has read", async () => {
  const organizationId = await store.newOrganization();
  const hash = crypto.getRandomValues(new Uint8Array(32));
  await store.db.query(
    `with keyed as (insert into api_key (id, organization_id, name, scopes) values ($1, $2, '', '{inference:create}'))
     insert into key_secret (key_id, number, hash, prefix, suffix) values ($1, 1, $3, 'slk_', '')`,
    [newHex(), organizationId.slice("org_".length), hash],
  );
  const real = await directory(store.db).credential(hash);
  expect(shapeOf(callerOn("pro"))).toEqual(shapeOf(real));
});

test("so do the answers to every command", async () => {
  const book = ledger(store.db, { recovery: "checkpoint" });
  const admit = admitOf(await store.newOrganization());
  const names = { requestId: admit.requestId, organizationId: admit.organizationId, number: 1 };
  const commands: Command[] = [
    admit,
    { verb: "grow", ...names, limits: admit.limits, nanosTotal: 2000, nanosTotal_min: 2000 },
    { verb: "checkpoint", ...names, usage: noUsage, lease_ms: 1000 },
    settleOf(admit, 700),
  ];
  const [real, ours] = [await book.run(commands), await grantAll(commands)];
  expect(ours.map(({ answer }) => answer)).toEqual(real.map(({ answer }) => answer));
  expect(ours.map(shapeOf)).toEqual(real.map(shapeOf));
  await book.close();
});
