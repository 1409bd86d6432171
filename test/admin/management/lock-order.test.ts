// Concurrent verbs take their locks in one order, person before organization, so that Postgres finds no deadlock. Each
// test takes one lock as a verb does, lets another verb wait for it, and then takes the next lock.
import { expect, setDefaultTimeout, test } from "bun:test";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare } from "../../../src/core/store/ids.ts";
import { actsWaiting } from "../../harness/acts-waiting.ts";
import { cameIn } from "../../harness/members.ts";
import { worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(60_000);
const world = worldForTests();

const waiting = (acts = 1) => actsWaiting(world.db, acts);

test("an organization's administrator limits somebody who is signing in", async () => {
  const { db, people, acme } = world;
  const lea = actingAs(db, callersIn(world)["organization-admin"]);
  let limiting: Promise<unknown> = Promise.resolve();
  await db.transaction(async (signIn) => {
    await signIn.query("select id from person where id = $1 for no key update", [bare(people.ann, "per_")]);
    limiting = lea.updatePersonLimits({ person: people.ann, organization: "acme", own: { week: "5" } });
    limiting.catch(() => {});
    await waiting();
    await signIn.query("select id from organization where id = $1 for key share", [bare(acme, "org_")]);
  });
  expect(await limiting).toMatchObject({ own: { week: { amount: "5.000000000" } } });
});

test("an organization's administrator limits somebody while she herself is suspended", async () => {
  const { db, manage, people, acme } = world;
  const lea = actingAs(db, callersIn(world)["organization-admin"]);
  const acts: Promise<unknown>[] = [];
  await db.transaction(async (other) => {
    await other.query("select id from organization where id = $1 for update", [bare(acme, "org_")]);
    acts.push(lea.updatePersonLimits({ person: people.ann, organization: "acme", own: { week: "4" } }));
    await waiting();
    acts.push(manage.suspendPerson({ person: people.lea }));
    await waiting(2);
  });
  const ends = await Promise.allSettled(acts);
  await manage.resumePerson({ person: people.lea });
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
});

test("a person gets a key and a membership at once", async () => {
  const { db, manage, people, acme } = world;
  let giving: Promise<unknown> = Promise.resolve();
  await db.transaction(async (creation) => {
    await creation.query("select id from organization where id = $1 for update", [bare(acme, "org_")]);
    giving = manage.giveMembership({ person: people.ann, organization: "acme", role: "member", team: "support" });
    giving.catch(() => {});
    await waiting();
    // The lock that the foreign key of a new API key takes.
    await creation.query("select id from person where id = $1 for key share", [bare(people.ann, "per_")]);
  });
  expect(await giving).toMatchObject({ memberships: [{ team: { name: "support" } }] });
});

test("somebody returns after so long that the old keys end, while one of them is changed", async () => {
  const { db, people, keys, acme } = world;
  const membership = { team: null, role: "member", scopes, models: null } as const;
  const confirm = (organizations: string[]) =>
    cameIn(db, {
      subject: "ann",
      memberships: organizations.map((organization) => ({ ...membership, organization })),
      keysEndAfter_ms: 3_600_000,
    });
  const person = bare(people.ann, "per_");
  await db.query("delete from membership where person_id = $1 and source = 'hand'", [person]);
  await confirm([]);
  await db.query("update membership set ended_at = ended_at - interval '1 day' where person_id = $1", [person]);
  let returning: Promise<unknown> = Promise.resolve();
  await db.transaction(async (change) => {
    await change.query("select id from organization where id = $1 for no key update", [bare(acme, "org_")]);
    returning = confirm(["acme"]);
    returning.catch(() => {});
    await waiting();
    await change.query("select id from api_key where id = $1 for update", [bare(keys.key, "key_")]);
  });
  await returning;
  expect(await world.manage.findPerson({ person: people.ann })).toMatchObject({
    memberships: [{ organization: "acme" }],
  });
  expect(await world.manage.findKey({ id: keys.key })).toMatchObject({ state: "revoked" });
});
