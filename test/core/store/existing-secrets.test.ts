// The list of existing secrets, read in pieces, on both kinds of database; and a node that missed the announcement of a
// secret.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { NewSecret } from "../../../src/core/store/directory.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { existingSecretsIn } from "../../../src/stores/postgres/existing-secrets.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { metricIn, metricsOf } from "../../attacks/talk.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, kinds } from "../../stores/postgres/databases.ts";
import { addKey, addOrganization } from "./made.ts";
import { newSecret } from "./new-key.ts";

setDefaultTimeout(60_000);

const actor = "cli:ann";
/** Adds a key, to a new organization if none is given. */
async function keyIn(db: Database, organizationId?: string): Promise<{ id: string; secret: NewSecret }> {
  const secret = newSecret();
  const { id } = await addKey(db, organizationId ?? (await addOrganization(db)).id, { secret });
  return { id, secret };
}

const fingerprintOf = ({ hash }: NewSecret) => hash.slice(0, 8).toHex();

describe.each(kinds.map((one) => [one.kind, one] as const))("%s", (_kind, { open }) => {
  const db = databaseForTests(open);

  async function readAll(keys_max: number): Promise<{ fingerprints: string[]; pieces: number }> {
    const store = existingSecretsIn(db, keys_max);
    const fingerprints: string[] = [];
    let from: string | null = null;
    let pieces = 0;
    do {
      const piece = await store.piece(from);
      const packed = piece.fingerprints.toHex();
      fingerprints.push(...(packed.match(/.{16}/g) ?? []));
      from = piece.next;
      pieces += 1;
    } while (from !== null);
    return { fingerprints, pieces };
  }

  test("each secret that may be used is in one piece, and none that was revoked or whose grace is over", async () => {
    expect(await readAll(10)).toEqual({ fingerprints: [], pieces: 1 });
    const admin = administration(db);
    const [acme, closed] = [(await addOrganization(db)).id, (await addOrganization(db)).id];
    const key = (organizationId: string) => keyIn(db, organizationId);
    const kept = await Promise.all(Array.from({ length: 6 }, () => key(acme)));
    const revoked = await key(acme);
    await admin.revokeKey({ id: revoked.id, old: false, actor });
    await key(closed);
    await admin.closeOrganization(closed, actor);
    const rotated = await key(acme);
    const second = newSecret();
    await admin.rotateKey({ id: rotated.id, secret: second, graceEndsAt: new Date(Date.now() + 3_600_000), actor });
    const ended = await key(acme);
    const third = newSecret();
    await admin.rotateKey({ id: ended.id, secret: third, graceEndsAt: new Date(Date.now() - 3_600_000), actor });
    const expected = [...kept, rotated].map(({ secret }) => fingerprintOf(secret)).concat(fingerprintOf(second));
    expected.push(fingerprintOf(third));
    for (const keys_max of [1, 3, 100]) {
      const { fingerprints, pieces } = await readAll(keys_max);
      expect(fingerprints.toSorted()).toEqual(expected.toSorted());
      expect(pieces).toBe(Math.ceil(8 / keys_max) + 1);
    }
  });

  test("keys that were made last come first", async () => {
    const newest = await keyIn(db);
    const { fingerprints } = await existingSecretsIn(db, 1).piece(null);
    expect(fingerprints.toHex()).toBe(fingerprintOf(newest.secret));
  });
});

test("a node reads them again when it may have missed an announcement", async () => {
  const fresh = await migratedDatabase();
  const db = await serverDatabase(fresh.url);
  const sluice = await startSluice({ store: "pglite", dataDir: "unused", env: { DATABASE_URL: fresh.url } });
  try {
    const count = async () => metricIn(await metricsOf(sluice), "authentication_existing_secrets");
    const [before] = await db.query<{ keys: number }>("select count(*)::int as keys from key_secret");
    const keys = before!.keys;
    await until(async () => (await count()) === keys, 10_000, "the node to have read them");
    await keyIn(db);
    await until(async () => (await count()) === keys + 1, 10_000, "the node to hear of a key");
    // A key that is not announced, as if its announcement had been lost.
    const copied = await db.query<{ id: string }>(
      `insert into api_key (id, organization_id, name, scopes)
       select $1::uuid, organization_id, name, scopes from api_key limit 1 returning id`,
      [Bun.randomUUIDv7()],
    );
    await db.query("insert into key_secret (key_id, number, hash, prefix, suffix) values ($1, 1, $2, '', '')", [
      copied[0]!.id,
      newSecret().hash,
    ]);
    await db.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'",
    );
    await until(async () => (await count()) === keys + 2, 20_000, "the node to read them again");
  } finally {
    await sluice.stop();
    await db.close().finally(fresh.drop);
  }
});
