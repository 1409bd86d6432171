// Reports are read from a replica that follows its primary, as docs/scale.md says.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { migrate } from "../../../db/migrate.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../../core/store/ledger-stores.ts";
import { type Pair, startPair } from "../../harness/replica.ts";
import { shortLived } from "../../harness/short-lived.ts";
import { program } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(120_000);

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

async function sluice(url: string, ...words: string[]) {
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", DATABASE_URL: url, ...shortLived };
  const run = Bun.spawn([...program, ...words], {
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  return { out, err, code };
}

test("a report of a replica is that of its primary, also before the roll-up; what changes something is refused there", async () => {
  const db = await serverDatabase(pair.primary.url);
  await migrate(db);
  const organization = `org_${newHex()}`;
  await db.query(
    "insert into organization (id, slug, name, plan, anchor_at) values ($1, 'acme', 'Acme', 'pro', store_now())",
    [uuidOf(organization, "org_")],
  );
  const book = ledger(db, { recovery: "checkpoint" });
  const used = async (count: number) => {
    const admits = Array.from({ length: count }, () => admitOf(organization));
    await book.run(admits);
    await book.run(admits.map((admit) => settleOf(admit, 700)));
  };
  await used(5);
  await book.rollUp();
  await used(3);
  await book.close();
  const [at] = await pair.ask<{ lsn: string }>(pair.primary, "select pg_current_wal_lsn() as lsn");
  const hasAll = `select pg_last_wal_replay_lsn() >= '${at!.lsn}' as done`;
  await until(async () => (await pair.ask<{ done: boolean }>(pair.replica, hasAll))[0]!.done, 20_000, "the replica");
  const words = ["usage", "report", "--by", "organization,model", "--json"];
  const [ofPrimary, ofReplica] = [await sluice(pair.primary.url, ...words), await sluice(pair.replica.url, ...words)];
  const asked = ({ out }: { out: string }) => ({ ...JSON.parse(out), as_of: null });
  expect(asked(ofReplica)).toEqual(asked(ofPrimary));
  expect(ofReplica.code).toBe(0);
  expect(ofReplica.out).toContain('"requests":8');
  for (const writes of [
    ["org", "create", "other", "--plan", "pro"],
    ["usage", "check"],
  ]) {
    const { code, err } = await sluice(pair.replica.url, ...writes);
    expect([writes, code, /read-only/.test(err)]).toEqual([writes, 1, true]);
  }
  await db.close();
});
