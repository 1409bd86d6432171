// Migration 0035: limits of sign-ins and identity tokens move to their person, and none is lost or raised by it.
import { expect, setDefaultTimeout, test } from "bun:test";
import { migrate, migrations } from "../../../db/migrate.ts";
import { key_random_bytes, newKey, secretOf } from "../../../src/core/auth/key.ts";
import { type Budget, noBudget } from "../../../src/core/store/budget.ts";
import { bare, idOf, uuidOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { peopleAdministration } from "../../../src/stores/postgres/people-administration.ts";
import { tokensOf } from "../../admin/management/world.ts";
import { newMember } from "../../harness/members.ts";
import { kindsFor } from "../../stores/postgres/databases.ts";

setDefaultTimeout(60_000);
const before = migrations.slice(
  0,
  migrations.findIndex(({ name }) => name.startsWith("0035")),
);
const budget = (limits: Partial<Budget>): Budget => ({ ...noBudget, ...limits });

async function rotation(db: Database, id: string) {
  const secret = secretOf(newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes))));
  await administration(db).rotateKey({ id, secret, graceEndsAt: null, actor: "cli:ann" });
  return secret;
}

for (const { kind, open } of kindsFor(import.meta.path))
  test(`on ${kind}, each limit of such a key counts for the person afterwards, and secrets by a rotation end`, async () => {
    const { db, drop } = await open({ migrated: false });
    try {
      await migrate(db, before);
      const acme = idOf(Bun.randomUUIDv7(), "org_");
      await db.query("insert into organization (id, slug, name, anchor_at) values ($1, 'acme', 'acme', store_now())", [
        bare(acme, "org_"),
      ]);
      const member = (name: string) => newMember(db, name, { organization: "acme" });
      const [ann, bob, cat, dan] = [await member("ann"), await member("bob"), await member("cat"), await member("dan")];
      const keys = await Promise.all([ann, bob, cat, dan].map((person) => tokensOf(db, person, acme, null)));
      const limited = (id: string, limits: string, minutes = "null") =>
        db
          .query(`select usage_set_subject($1, $2, null, '${limits}') from (select 1) one`, [
            uuidOf(id, "key_"),
            bare(acme, "org_"),
          ])
          .then(() =>
            db.query(`update usage_subject set requests_per_minute = ${minutes} where subject_id = $1`, [
              uuidOf(id, "key_"),
            ]),
          );
      await db.query("insert into member_default (owner_id, month_units, week_units) values ($1, 9000, 800)", [
        bare(acme, "org_"),
      ]);
      await db.query("insert into member_limit (organization_id, person_id, week_units) values ($1, $2, 50)", [
        bare(acme, "org_"),
        bare(bob, "per_"),
      ]);
      await db.query("select usage_refresh_members($1, null)", [bare(acme, "org_")]);
      await limited(keys[0]!.jwt, "{null,700,null,2}", "60");
      await limited(keys[0]!["sign-in"], "{5,900,null,null}");
      await limited(keys[1]!.jwt, "{null,100,null,null}");
      await limited(keys[2]!.jwt, "{null,100,null,null}");
      await db.query("update api_key set revoked_at = store_now() where id = $1", [uuidOf(keys[2]!.jwt, "key_")]);
      await db.query(
        `insert into limit_raise (subject_id, organization_id, week_units, ends_at, set_at, set_by)
         values ($1, $2, 5000, store_now() + interval '1 day', store_now(), 'cli:ann')`,
        [uuidOf(keys[0]!.jwt, "key_"), bare(acme, "org_")],
      );

      // A rotation without a grace, and one whose grace is over and forgotten.
      const rotated = [keys[1]!.jwt, keys[3]!.jwt, keys[3]!["sign-in"]];
      const secrets = await Promise.all(rotated.map((id) => rotation(db, id)));
      await administration(db).revokeKey({ id: rotated[0]!, old: true, actor: "cli:ann" });
      await db.query("delete from key_secret where key_id = $1 and prefix = ''", [uuidOf(rotated[1]!, "key_")]);

      await migrate(db);

      for (const { hash } of secrets)
        expect((await directory(db).credential(hash))!.secret.revokedAt).toBeInstanceOf(Date);
      for (const [person, id] of [
        [bob, rotated[0]],
        [dan, rotated[1]],
      ] as const) {
        const token = { id: idOf(Bun.randomUUIDv7(), "key_"), personId: person, organization: "acme", team: null };
        const key = (await people(db).tokenKey(token))!;
        expect(key.id).toBe(id!);
        expect((await directory(db).credential(key.secretHash))!.secret).toMatchObject({
          expiresAt: null,
          revokedAt: null,
        });
      }
      const own = (person: string) => peopleAdministration(db).memberLimits(person, acme);
      // The month of the default would be lost by limits of her own that don't name it.
      const anns = budget({ session: 5, week: 700, month: 9_000, concurrentRequests: 2, requestsPerMinute: 60 });
      expect(await own(ann)).toEqual(anns);
      expect(await own(bob)).toEqual(budget({ week: 50 }));
      // The key is revoked: nothing counted any more.
      expect(await own(cat)).toBeNull();
      expect(await own(dan)).toBeNull();
      const counted = await peopleAdministration(db).memberBudgets([ann, bob, cat]);
      expect(counted.get(ann)).toMatchObject([{ isOwn: true, budget: anns }]);
      expect(counted.get(bob)).toMatchObject([{ isOwn: true, budget: budget({ week: 50 }) }]);
      expect(counted.get(cat)).toMatchObject([{ isOwn: false, budget: budget({ month: 9_000, week: 800 }) }]);
      const left = `select subject_id from usage_subject s join api_key k on k.id = s.subject_id
        where k.kind <> 'key' and coalesce(session_units, week_units, month_units, concurrent_requests,
          requests_per_minute, tokens_per_minute) is not null`;
      expect(await db.query(left)).toEqual([]);
      expect(await db.query("select * from limit_raise")).toEqual([]);
      // Her key is the same as before.
      const token = { id: idOf(Bun.randomUUIDv7(), "key_"), personId: ann, organization: "acme", team: null };
      expect((await people(db).tokenKey(token))!.id).toBe(keys[0]!.jwt);
    } finally {
      await drop();
    }
  });
