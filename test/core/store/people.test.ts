// People for whom an issuer (identity provider) vouches: found or created, confirmed, with memberships by rules and by
// hand.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { hashKey } from "../../../src/core/auth/credential.ts";
import type { Identity, Issuer, Rule } from "../../../src/core/auth/identity.ts";
import { judge } from "../../../src/core/auth/verdict.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import type { NamedMembership } from "../../../src/core/store/people.ts";
import { confirmPerson } from "../../../src/features/identity/confirm.ts";
import type { Confirmation } from "../../../src/features/identity/store/people.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { addPersonalNotice } from "../../../src/stores/postgres/notice-finding.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { setLimits } from "../../harness/limits.ts";
import { until } from "../../harness/until.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";
import { addOrganization, addTeam } from "./made.ts";

setDefaultTimeout(60_000);
const day_ms = 86_400_000;

const uuid = () => Bun.randomUUIDv7();
const issuer = "https://login.example";
const of = (subject: string, fields: Partial<Confirmation> = {}): Confirmation => ({
  id: idOf(uuid(), "per_"),
  issuer,
  subject,
  kind: "person",
  memberships: null,
  ...fields,
});
const member = (organization: string | null, fields: Partial<NamedMembership> = {}): NamedMembership => ({
  organization,
  team: null,
  role: organization === null ? "admin" : "member",
  scopes,
  models: null,
  ...fields,
});

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  const organization = () => addOrganization(db);
  const lastAudit = async () => (await administration(db).listAudit({ limit: 1 }))[0]!;

  test("one subject of one issuer is one person, however many come at once", async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => people(db).confirm(of("ann"))));
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(all.filter(({ isNew }) => isNew)).toHaveLength(1);
    const other = await people(db).confirm(of("ann", { issuer: "https://other.example" }));
    expect(other.id).not.toBe(all[0]!.id);
    expect((await people(db).confirm(of("Ann"))).id).not.toBe(all[0]!.id);
  });

  test("a later word replaces an earlier one, and an earlier one that comes late says nothing", async () => {
    const person = await people(db).confirm(of("bob", { name: "Bob", email: "bob@example.com", groups: ["a"] }));
    expect(person).toMatchObject({
      name: "Bob",
      email: "bob@example.com",
      groups: ["a"],
      groupsAt: person.confirmedAt,
    });
    const kept = await people(db).confirm(of("bob", { name: "Robert" }));
    expect(kept).toMatchObject({ name: "Robert", email: "bob@example.com", groups: ["a"] });
    const at = new Date(person.createdAt.getTime() - day_ms);
    const late = await people(db).confirm(of("bob", { at, name: "Old", groups: [] }));
    expect(late).toMatchObject({ name: "Robert", groups: ["a"], confirmedAt: kept.confirmedAt });
    const future = new Date(Date.now() + day_ms);
    const early = await people(db).confirm(of("bob", { at: future }));
    expect(early.confirmedAt.getTime()).toBeLessThan(future.getTime());
  });

  test("an earlier word that comes late brings no membership back, and takes none", async () => {
    const acme = await organization();
    const admin = member(null);
    const first = await people(db).confirm(of("bea", { memberships: [admin] }));
    const current = await people(db).confirm(of("bea", { memberships: [member(acme.slug)] }));
    const at = first.confirmedAt;
    const late = await people(db).confirm(of("bea", { at, memberships: [admin] }));
    expect(late).toMatchObject({ memberships: current.memberships, missing: [] });
    expect(late.memberships).toMatchObject([{ organization: acme.slug }]);
    const same = await people(db).confirm(of("bea", { at: current.confirmedAt, memberships: [] }));
    expect(same.memberships).toEqual([]);
  });

  test("a word from before a sign-out or an erasure says nothing", async () => {
    const acme = await organization();
    const memberships = [member(acme.slug)];
    const at = new Date(Date.now() - 60_000);
    const { id } = await people(db).confirm(of("ben", { at, name: "Ben", memberships }));
    await people(db).endIssued(id, "cli:ann");
    const out = await people(db).confirm(of("ben", { at, name: "Benjamin", memberships: [] }));
    expect(out).toMatchObject({ name: "Ben", memberships: [{ organization: acme.slug }] });
    await administration(db).forgetPerson(id, "cli:ann");
    const gone = await people(db).confirm(of("ben", { at, name: "Ben", memberships }));
    expect(gone).toMatchObject({ id, state: "forgotten", subject: null, name: null, memberships: [] });
    const back = await people(db).confirm(of("ben", { name: "Ben", memberships }));
    expect(back).toMatchObject({ id, state: "active", subject: "ben", memberships: [{ organization: acme.slug }] });
  });

  test("memberships follow the rules: given, changed, lost, regained, each written down once", async () => {
    const acme = await organization();
    const research = await addTeam(db, acme.id, { name: "research" });
    const first = member(acme.slug, { team: "research", scopes: ["models:read"], models: ["a/b"] });
    const given = await people(db).confirm(of("cat", { memberships: [first, member(acme.slug), member("gone")] }));
    expect(given.memberships).toMatchObject([
      { organization: acme.slug, role: "member", scopes: ["models:read"], models: ["a/b"], source: "rule" },
    ]);
    expect(given.memberships[0]!.team).toEqual({ id: research.id, name: "research" });
    expect(given.missing).toEqual([member("gone")]);
    const made = await lastAudit();
    expect(made).toMatchObject({ action: "person.create", subject: given.id, actor: "service" });
    await people(db).confirm(of("cat", { memberships: [first] }));
    expect((await lastAudit()).number).toBe(made.number);
    const changed = await people(db).confirm(
      of("cat", { memberships: [member(acme.id, { role: "organization-admin" })] }),
    );
    expect(changed.memberships).toMatchObject([{ role: "organization-admin", team: null, models: null }]);
    const lost = await people(db).confirm(of("cat", { memberships: [] }));
    expect(lost.memberships).toEqual([]);
    expect((await lastAudit()).details).toMatchObject({ given: [], lost: [{ organization_id: acme.id }] });
    const again = await people(db).confirm(of("cat", { memberships: [member(acme.slug), member(null)] }));
    expect(again.memberships.map(({ role }) => role)).toEqual(["member", "admin"]);
    expect((await people(db).confirm(of("cat"))).memberships).toHaveLength(2);
  });

  test("a change of memberships is announced to every node, by the person's id", async () => {
    const acme = await organization();
    const heard: string[] = [];
    const stop = await db.listen("key_changed", (message) => heard.push(message.split(" ")[0]!));
    const person = await people(db).confirm(of("dan", { memberships: [member(acme.slug)] }));
    await people(db).confirm(of("dan", { memberships: [member(acme.slug)] }));
    await people(db).confirm(of("dan", { memberships: [] }));
    await people(db).endIssued(person.id, "cli:ann");
    await until(() => heard.filter((id) => id === person.id).length >= 3, 10_000, "three messages");
    await stop();
    expect(heard.filter((id) => id === person.id)).toHaveLength(3);
  });

  test("somebody without a membership is deleted 30 days after the issuer's last word, and nobody who has or had anything", async () => {
    const acme = await organization();
    const come = async (fields: Partial<Confirmation> = {}) =>
      people(db).confirm(of(uuid(), { name: "Visitor", ...fields }));
    const [visitor, lost, hand, limited, suspended] = [
      await come({ memberships: [] }),
      await come({ memberships: [member(acme.slug)] }),
      await come(),
      await come(),
      await come(),
    ];
    await people(db).confirm(of(lost.subject!, { memberships: [] }));
    const admin = administration(db);
    await admin.giveMembership(hand.id, member(acme.slug), "cli:ann");
    await setLimits(db, { subject: "person", id: limited.id, organizationId: acme.id }, { own: { week: 5 } });
    await admin.suspendPerson(suspended.id, "cli:ann");
    const stay = [lost, hand, limited, suspended];
    const isThere = async ({ id }: { id: string }) => (await people(db).findPerson(id)) !== null;
    const deletedAt = (ms: number) => withClock(db, new Date(ms), () => people(db).deleteVisitors());
    const end_ms = suspended.confirmedAt.getTime() + 30 * day_ms;
    await deletedAt(visitor.confirmedAt.getTime() + 30 * day_ms);
    expect(await isThere(visitor)).toBeTrue();
    expect(await deletedAt(end_ms + 1)).toBeGreaterThan(0);
    expect(await isThere(visitor)).toBeFalse();
    expect(await Promise.all(stay.map(isThere))).toEqual([true, true, true, true]);
    expect(await lastAudit()).toMatchObject({ action: "person.delete", actor: "service", details: {} });
    expect(await deletedAt(end_ms + 1)).toBe(0);
    const again = await people(db).confirm(of(visitor.subject!));
    expect([again.isNew, again.id === visitor.id]).toEqual([true, false]);
  });

  test("a visitor who was told of a decision by mail is deleted like the others, and the mail's notice too", async () => {
    const visitor = await people(db).confirm(of(uuid(), { email: "lea@acme.example", isEmailVerified: true }));
    const id = bare(visitor.id, "per_");
    await addPersonalNotice(db, id, { kind: "limit.decided", about: uuid(), details: {} });
    const notices = () => db.query("select from notice where person_id = $1", [id]);
    expect(await notices()).toHaveLength(1);
    const end = new Date(visitor.confirmedAt.getTime() + 30 * day_ms + 1);
    await withClock(db, end, () => people(db).deleteVisitors());
    expect([await people(db).findPerson(visitor.id), await notices()]).toEqual([null, []]);
  });

  test("a visitor who comes back while visitors are deleted comes in, and keeps what is then given", async () => {
    const acme = await organization();
    const subjects = Array.from({ length: 20 }, () => uuid());
    const known = await Promise.all(subjects.map((subject) => people(db).confirm(of(subject))));
    await withClock(db, new Date(Date.now() + 31 * day_ms), async () => {
      const deleting = people(db).deleteVisitors();
      const back = await Promise.all(subjects.slice(0, 10).map((subject) => people(db).confirm(of(subject))));
      const given = await Promise.all(
        known.slice(10).map(({ id }) => administration(db).giveMembership(id, member(acme.slug), "cli:ann")),
      );
      await deleting;
      for (const { id } of back) expect(await people(db).findPerson(id)).not.toBeNull();
      for (const [index, one] of given.entries())
        expect(await people(db).findPerson(known[10 + index]!.id)).toEqual(one as never);
    });
  });

  test("the audit log has nobody's name, address or subject: it cannot forget", async () => {
    const acme = await organization();
    const details = { email: "eve.secret@example.com", name: "Eve Secret", groups: ["secret"] };
    await people(db).confirm(of("eve-secret", { ...details, memberships: [member(acme.slug)] }));
    const stored = await db.query("select * from audit_entry");
    expect(stored.length).toBeGreaterThan(0);
    expect(JSON.stringify(stored)).not.toMatch(/secret/i);
  });

  test("somebody who comes back after long finds their old keys revoked; somebody who comes back before that finds them working", async () => {
    const acme = await organization();
    const keysEndAfter_ms = 30 * day_ms;
    const seen = (memberships: NamedMembership[]) => people(db).confirm(of("fay", { memberships, keysEndAfter_ms }));
    const person = await seen([member(acme.slug)]);
    const key = await people(db).tokenKey({
      id: idOf(uuid(), "key_"),
      personId: person.id,
      organization: acme.id,
    });
    const isRevoked = async () => (await directory(db).credential(key!.secretHash))!.key.revokedAt !== null;
    const after = (days: number, work: () => Promise<unknown>) =>
      withClock(db, new Date(Date.now() + days * day_ms), work);
    await after(1, () => seen([]));
    await after(30, () => seen([member(acme.slug)]));
    expect(await isRevoked()).toBe(false);
    await after(31, () => seen([]));
    await after(62, () => seen([member(acme.slug)]));
    expect(await isRevoked()).toBe(true);
  });

  test("a person's identity tokens call as one key in an organization, however many come at once, which follows to a team", async () => {
    const acme = await organization();
    const { id: research } = await addTeam(db, acme.id, { name: "research" });
    const confirm = (name: string | null) =>
      people(db).confirm(of("gus", { memberships: [{ ...member(acme.slug), team: name }] }));
    const person = await confirm(null);
    const key = (organization = acme.slug) =>
      people(db).tokenKey({ id: idOf(uuid(), "key_"), personId: person.id, organization });
    const all = await Promise.all([key(), key(), key(acme.id)]);
    expect(new Set(all.map((one) => one!.id)).size).toBe(1);
    const found = await directory(db).credential(all[0]!.secretHash);
    expect(found!.key.id).toBe(all[0]!.id);
    // A client's key is looked up by the hash of the text that is sent, and no text has this hash.
    expect(all[0]!.secretHash).not.toEqual(hashKey(all[0]!.id));
    const teamOfKey = async () => (await administration(db).findKey(all[0]!.id))!.team?.id ?? null;
    await confirm("research");
    expect(await teamOfKey()).toBe(research);
    expect((await key())!.id).toBe(all[0]!.id);
    // An older version left the key in the team in which it was made.
    await db.query("update usage_subject set team_id = null where subject_id = $1", [bare(all[0]!.id, "key_")]);
    await key();
    expect(await teamOfKey()).toBe(research);
    // A team that was removed does not come back with the next change of the person.
    await administration(db).removeTeam(research, "cli:ann");
    await setLimits(db, { subject: "person", id: person.id, organizationId: acme.id }, { own: { week: 9_000 } });
    expect(await teamOfKey()).toBeNull();
    expect(await key("gone")).toBeNull();
    expect(await key((await organization()).slug)).toBeNull();
  });

  test("an organization's policies for keys end no identity token", async () => {
    const acme = await organization();
    const person = await people(db).confirm(of("ida", { memberships: [member(acme.slug)] }));
    const key = await people(db).tokenKey({ id: idOf(uuid(), "key_"), personId: person.id, organization: acme.id });
    await administration(db).setPolicies(acme.id, { keyLifetimeMaxDays: 1, keyUnusedMaxDays: 1 }, "cli:ann");
    await withClock(db, new Date(Date.now() + 40 * day_ms), async () => {
      const found = await directory(db).credential(key!.secretHash);
      expect(judge(found, "00")).toMatchObject({ principal: { key: { id: key!.id } } });
      const listed = await administration(db).pageKeys({ organizationId: acme.id, kind: "jwt", limit: 1 });
      expect(listed.items).toMatchObject([{ state: "active", endsAt: null }]);
    });
  });

  test("confirmPerson asks the rules in force, and keeps groups that an answer leaves out for as long as they say", async () => {
    const acme = await organization();
    const rule: Rule = {
      ...{ issuer: null, claim: "groups", wanted: { has: "research" }, role: "member", kind: "person" },
      ...{ organization: acme.slug, team: null, scopes, models: null },
    };
    const trusted: Issuer = {
      ...{ issuer, clientId: null, clientSecret: null, scopes: [], parameters: {}, audiences: [], algorithms: [] },
      ...{ name: "login", subject: ["sub"], groupsClaim: "groups" },
    };
    const identity: Identity = {
      ...{ serviceUrl: null, consoleUrl: null, issuers: [trusted], rules: [rule], keysOfLeavers: "revoke" },
      ...{ groupsMaxAge_ms: day_ms, sessionIdle_ms: day_ms, sessionMax_ms: day_ms, confirmedMax_ms: 30 * day_ms },
      claudeCodeSettings: false,
    };
    const signIn = (claims: object) =>
      confirmPerson({ people: people(db), identity, newUuid: uuid }, trusted, { sub: "hal", ...claims });
    expect(await signIn({ groups: ["research"] })).toMatchObject({ memberships: [{ role: "member" }] });
    expect(await signIn({})).toMatchObject({ memberships: [{ role: "member" }] });
    const later = await withClock(db, new Date(Date.now() + 2 * day_ms), () => signIn({}));
    expect(later).toMatchObject({ memberships: [] });
    expect(await signIn({ groups: ["research"] })).toMatchObject({ memberships: [{ role: "member" }] });
    expect(await signIn({ groups: [] })).toMatchObject({ memberships: [] });
    expect(signIn({ sub: undefined })).rejects.toThrow("lack sub");
  });
});
