/** A grant that is lost between two attempts, in the ledger itself: one record, one clear error, and no further attempt. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { until } from "../harness/until.ts";
import { asks } from "./callers.ts";
import { type Rig, startRig } from "./rig.ts";

let rig: Rig;
let sql: SQL;
beforeAll(async () => {
  const database = await migratedDatabase();
  sql = new SQL(database.url);
  const routes = [{ wall: 0, model: "s01-lost" }];
  const settings = "metering: { currency: USD, lease_s: 1.5, checkpoint_s: 0.3, sweep_s: 0.05 }\n";
  rig = await startRig(
    [{ id: "acme/lost", routes }],
    { store: "postgres", env: { DATABASE_URL: database.url } },
    settings,
  );
}, 60_000);
afterAll(async () => {
  await rig.stop();
  await sql.close();
});

test("no other attempt is made", async () => {
  const asking = asks(rig.sluice, "chat", "acme/lost", true);
  // After its first attempt, the request waits two seconds for the engine to have room.
  await until(() => rig.asked("s01-lost") === 1, 20_000, "the first attempt");
  // A checkpoint may come in between and extend the lease again.
  const isRecovered = async () => {
    await sql`update usage_hold set lease_until = now() - interval '1 second'`;
    return (await sql`select 1 from usage_hold`).length === 0;
  };
  await until(isRecovered, 1_500, "the hold to be recovered");
  const seen = await asking;
  expect(seen).toMatchObject({ isComplete: false, code: "storage_unavailable" });
  expect(rig.asked("s01-lost")).toBe(1);
  const records = await sql`select outcome from usage_record`;
  expect(records).toHaveLength(1);
  expect(await sql`select 1 from usage_hold`).toHaveLength(0);
  expect((await rig.sluice.cli("usage", "check")).code).toBe(0);
}, 60_000);
