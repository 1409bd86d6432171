// People as administrators change them: suspended, forgotten, given memberships; each change reaches every node.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { newKey, secretOf } from "../../../src/core/auth/credential.ts";
import { deadlineIn, judge, type PeoplePolicy } from "../../../src/core/auth/verdict.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { NamedMembership } from "../../../src/core/store/people.ts";
import { type KnownPerson, Person } from "../../../src/features/identity/store/people.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";
import { addKey, addOrganization } from "./made.ts";
import { newSecret } from "./new-key.ts";

setDefaultTimeout(60_000);
const day_ms = 86_400_000;
const uuid = () => Bun.randomUUIDv7();
const actor = "operator:ann";
const revoking: PeoplePolicy = { confirmedMax_ms: 30 * day_ms, keysOfLeavers: "revoke" };
const membership = (organization: string | null, fields: Partial<NamedMembership> = {}): NamedMembership => ({
  ...{ organization, team: null, role: organization === null ? "admin" : "member", scopes, models: null },
  ...fields,
});

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  beforeAll(async () => {
    // Another administrator, so that each of these people can be suspended and forgotten.
    const rights = { role: "admin", organizationId: null, expiresAt: null } as const;
    const secret = secretOf(newKey(crypto.getRandomValues(new Uint8Array(64)), "slo_"));
    await administration(db).createOperator({ id: idOf(uuid(), "op_"), name: "ann", ...rights, secret, actor });
  });

  const organization = () => addOrganization(db);
  const person = (memberships: NamedMembership[] = [], fields: object = {}) =>
    people(db).confirm({
      ...{ id: idOf(uuid(), "per_"), issuer: "https://login.example", subject: uuid(), kind: "person" },
      ...{ email: "ann@example.com", name: "Ann", groups: ["research"], memberships },
      ...fields,
    });
  /** A key that belongs to the person. */
  async function keyOf(personId: string, organizationId: string, keyScopes = [...scopes]) {
    const secret = newSecret();
    await addKey(db, organizationId, { scopes: keyScopes, secret, personId });
    return secret.hash;
  }
  const refusal = async (hash: Uint8Array, policy: PeoplePolicy | null = revoking) => {
    const verdict = judge(await directory(db).credential(hash), hash.toHex(), policy);
    return "refusal" in verdict ? verdict.refusal : null;
  };
  const lastAudit = async () => (await administration(db).listAudit({ limit: 1 }))[0]!;
  const known = (changed: unknown) => changed as KnownPerson;

  test("a suspended person's keys are refused, on every node; resumed, they work again", async () => {
    const acme = await organization();
    const ann = await person([membership(acme.slug)]);
    const hash = await keyOf(ann.id, acme.id);
    const heard: string[] = [];
    const stop = await db.listen("key_changed", (message) => heard.push(message.split(" ")[0]!));
    expect(await refusal(hash)).toBeNull();
    const suspended = known(await administration(db).suspendPerson(ann.id, actor));
    expect(suspended.state).toBe("suspended");
    expect(suspended.version).toBe(2);
    expect(await refusal(hash)).toBe("person_suspended");
    await until(() => heard.includes(ann.id), 10_000, "the message");
    await stop();
    expect(await lastAudit()).toMatchObject({ action: "person.suspend", subject: ann.id, actor });
    const again = known(await administration(db).suspendPerson(ann.id, actor));
    expect({ ...again, readAt: suspended.readAt }).toEqual(suspended);
    expect(await administration(db).resumePerson(ann.id, actor, 1)).toMatchObject({ stale: again });
    await administration(db).resumePerson(ann.id, actor, 2);
    expect(await refusal(hash)).toBeNull();
  });

  test("a person's key may do no more than the membership, and stops with it", async () => {
    const acme = await organization();
    const rights = { scopes: ["models:read", "usage:read"] as const, models: ["a/b"] };
    const ann = await person([membership(acme.slug, rights)]);
    expect(ann.memberships).toHaveLength(1);
    const hash = await keyOf(ann.id, acme.id, ["models:read", "inference:create"]);
    const verdict = judge(await directory(db).credential(hash), "", revoking);
    expect(verdict).toMatchObject({
      principal: { key: { scopes: ["models:read"], models: ["a/b"] }, person: { id: ann.id } },
    });
    await person([], { subject: ann.subject });
    expect(await refusal(hash)).toBe("no_membership");
    expect(await refusal(hash, { ...revoking, keysOfLeavers: "keep" })).toBeNull();
    await person([membership(acme.slug)], { subject: ann.subject });
    expect(await refusal(hash)).toBeNull();
  });

  test.each(["a rule", "hand"])(
    "a key that outlives a membership by %s may do no more than that allowed",
    async (how) => {
      const acme = await organization();
      const narrow = membership(acme.slug, { scopes: ["models:read"], models: ["a/b"] });
      const ann = await person(how === "hand" ? [] : [narrow]);
      if (how === "hand") await administration(db).giveMembership(ann.id, narrow, actor);
      const hash = await keyOf(ann.id, acme.id);
      const rights = async () => {
        const verdict = judge(await directory(db).credential(hash), "", { ...revoking, keysOfLeavers: "keep" });
        return "principal" in verdict && [verdict.principal.key.scopes, verdict.principal.key.models];
      };
      expect(await rights()).toEqual([["models:read"], ["a/b"]]);
      if (how === "hand") await administration(db).takeMembership(ann.id, acme.id, actor);
      else await person([], { subject: ann.subject });
      expect((await people(db).findPerson(ann.id))!.memberships).toEqual([]);
      expect(await rights()).toEqual([["models:read"], ["a/b"]]);
      expect(await refusal(hash)).toBe("no_membership");
      expect(await administration(db).takeMembership(ann.id, acme.id, actor)).toBe("no_membership");
      await administration(db).giveMembership(ann.id, membership(acme.slug), actor);
      expect(await rights()).toEqual([[...scopes], null]);
    },
  );

  test("a person's keys stop when the issuer has not vouched for the person for too long, to the millisecond", async () => {
    const acme = await organization();
    const ann = await person([membership(acme.slug)]);
    const hash = await keyOf(ann.id, acme.id);
    const end_ms = ann.confirmedAt.getTime() + revoking.confirmedMax_ms;
    const at = <T>(ms: number, work: () => Promise<T>) => withClock(db, new Date(ms), work);
    const before = await at(end_ms - 5, () => directory(db).credential(hash));
    expect(judge(before, "", revoking)).toHaveProperty("principal");
    expect(deadlineIn(before, revoking)).toBe(5);
    expect(await at(end_ms, () => refusal(hash))).toBe("unconfirmed");
    expect(await at(end_ms, () => refusal(hash, null))).toBeNull();
  });

  test("a membership by hand counts before one by a rule, and gives way to it when it is taken", async () => {
    const acme = await organization();
    const ann = await person([membership(acme.slug)]);
    const admin = administration(db);
    const own = membership(acme.slug, { scopes: ["usage:read"], role: "organization-admin" });
    const given = known(await admin.giveMembership(ann.id, own, actor));
    expect(given.memberships).toMatchObject([{ source: "hand", role: "organization-admin", createdBy: actor }]);
    expect(await lastAudit()).toMatchObject({ action: "membership.give", organizationId: acme.id, subject: ann.id });
    const same = known(await admin.giveMembership(ann.id, own, actor));
    expect(same.version).toBe(given.version);
    expect(await admin.giveMembership(ann.id, membership("gone"), actor)).toBe("no_organization");
    expect(await admin.giveMembership(ann.id, { ...own, team: "gone" }, actor)).toBe("no_team");
    const taken = known(await admin.takeMembership(ann.id, acme.id, actor));
    expect(taken.memberships).toMatchObject([{ source: "rule", role: "member" }]);
    expect(await admin.takeMembership(ann.id, acme.id, actor)).toBe("no_membership");
    expect(await admin.giveMembership(idOf(uuid(), "per_"), own, actor)).toBeNull();
  });

  test("a forgotten person leaves no text, their keys are revoked, and the issuer brings back the same ID", async () => {
    const acme = await organization();
    const ann = await person([membership(acme.slug), membership(null)]);
    const hash = await keyOf(ann.id, acme.id);
    const gone = known(await administration(db).forgetPerson(ann.id, actor));
    expect(gone.memberships).toEqual([]);
    expect(gone).toMatchObject({
      state: "forgotten",
      subject: null,
      email: null,
      name: null,
      groups: [],
      groupsAt: null,
    });
    expect(await refusal(hash)).toBe("revoked");
    const back = await person([membership(acme.slug)], { subject: ann.subject });
    expect(back).toMatchObject({ id: ann.id, state: "active", name: "Ann" });
    expect(await refusal(hash)).toBe("revoked");
  });

  test("a person is one value, however it is read, and only what its schema names is shown", async () => {
    const acme = await organization();
    const { isNew: _, missing: __, ...made } = await person([membership(acme.slug), membership(null)]);
    const { items } = await administration(db).pagePeople({ organizationId: acme.id, limit: 9 });
    const reads: unknown[] = [
      await people(db).findPerson(made.id),
      await people(db).personOf(made.issuer, made.subject!),
      ...items,
      await administration(db).resumePerson(made.id, actor),
    ];
    expect(reads.map((one) => ({ ...(one as KnownPerson), readAt: made.readAt }))).toEqual(Array(4).fill(made));
    const shown = encode(Person, made) as object;
    expect(Object.keys(shown)).toEqual(Object.keys(Person.properties));
    expect(decode(Person, shown).memberships).toEqual(made.memberships);
  });

  test("lists are in order, by organization, by a part of a name or an address, and by state", async () => {
    const acme = await organization();
    const [first, second] = [
      await person([membership(acme.slug)], { name: "Zoë Percent%", email: "zoe@example.com" }),
      await person([membership(acme.slug)], { name: "Bob", email: "Bob@Example.com" }),
    ];
    await administration(db).suspendPerson(second.id, actor);
    const list = async (query: object) =>
      (await administration(db).pagePeople({ limit: 10, organizationId: acme.id, ...query })).items.map(({ id }) => id);
    expect(await list({})).toEqual([first.id, second.id]);
    expect(await list({ search: "bob@example" })).toEqual([second.id]);
    expect(await list({ search: "%" })).toEqual([first.id]);
    expect(await list({ suspended: false })).toEqual([first.id]);
    expect(await list({ after: first.id })).toEqual([second.id]);
    const page = await administration(db).pagePeople({ limit: 1, organizationId: acme.id });
    expect(page.hasMore).toBe(true);
  });
});
