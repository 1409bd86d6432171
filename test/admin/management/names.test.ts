// Lists show names beside IDs. The search over all names shows callers nothing that their lists do not show. Erased
// objects have no names.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { listKeys, listOrganizations, listTeams } from "./lists.ts";
import { apart, recordRequest, worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(120_000);
let requestId: string;
const world = worldForTests(async (world) => {
  const { manage, people } = world;
  for (const name of ["reports", "all reports", "Reports of bob"])
    await manage.createKey({ organization: "acme", name });
  await manage.createKey({ organization: "acme", name: "bob's reports", person: people.bob });
  await manage.createKey({ organization: "globex", name: "other reports" });
  await manage.createTeam({ organization: "globex", name: "reporters" });
  requestId = await recordRequest(world);
});

const namesFound = async (manage: Management, input: Parameters<Management["search"]>[0]) =>
  (await manage.search(input)).data.map(({ name }) => name);

describe("a search", () => {
  test("finds the whole name first, then names that begin with it, then those that contain it, in any case", async () => {
    const found = await namesFound(world.manage, { text: "REPORTS", kind: "key" });
    expect(found).toEqual(["reports", "Reports of bob", "all reports", "bob's reports", "other reports"]);
  });

  test("finds all kinds of things at once, and of each what tells it from others", async () => {
    const { data } = await world.manage.search({ text: "report" });
    expect(data.filter(({ kind }) => kind === "team")).toMatchObject([{ name: "reporters", organization: "globex" }]);
    expect(data.find(({ name }) => name === "bob's reports")).toMatchObject({ organization: "acme", detail: "bob" });
    const [bob] = (await world.manage.search({ text: "bob@exam" })).data;
    const named = { kind: "person", id: world.people.bob, name: "bob", detail: "bob@example.com" } as const;
    expect(bob).toEqual({ ...named, organization: null });
    expect((await world.manage.search({ text: "writer" })).data).toMatchObject([
      { kind: "model", id: "acme/writer-1" },
    ]);
    expect((await world.manage.search({ text: "glob" })).data[0]).toMatchObject({
      kind: "organization",
      id: world.globex,
      organization: "globex",
    });
  });

  test("finds a model by its name before the many things whose names only begin with it", () =>
    apart(world, async ({ root: manage }) => {
      const asked = { text: "writer-1" };
      for (let number = 1; number <= 11; number++)
        await manage.createKey({ organization: "acme", name: `writer-1 ${number}` });
      const { data } = await manage.search(asked);
      expect(data).toHaveLength(10);
      expect(data[0]).toEqual({
        ...{ kind: "model", id: "acme/writer-1", name: "acme/writer-1", organization: null, detail: "chat" },
      });
      expect((await namesFound(manage, { text: "ACME/writer-1" }))[0]).toBe("acme/writer-1");
      expect((await manage.search({ text: "writer", limit: 1 })).data).toMatchObject([{ kind: "key" }]);
    }));

  test("finds a thing by its ID and by the beginning of it", async () => {
    const { teams, people, keys, acme, manage } = world;
    for (const id of [acme, teams.research, people.ann, keys.key, requestId])
      for (const text of [id, id.slice(0, -1), id.slice(0, -4)])
        expect([text, (await manage.search({ text })).data.map((one) => one.id)]).toEqual([
          text,
          expect.arrayContaining([id]),
        ]);
    expect((await manage.search({ text: `key_${"f".repeat(32)}` })).data).toEqual([]);
    expect((await manage.search({ text: `req_${"f".repeat(32)}` })).data).toEqual([]);
  });

  test("takes what somebody types as text, not as a pattern", async () => {
    for (const text of ["%", "_", "'", "\\", "report%"]) {
      const { data } = await world.manage.search({ text });
      expect([text, data.every(({ name }) => name.includes(text))]).toEqual([text, true]);
    }
  });

  test("answers as many as are asked for, and no revoked key", async () => {
    const { manage } = world;
    expect(await namesFound(manage, { text: "report", limit: 2 })).toHaveLength(2);
    const { id } = await manage.createKey({ organization: "acme", name: "gone reports" });
    await manage.revokeKey({ id });
    expect(await namesFound(manage, { text: "gone reports" })).toEqual([]);
  });

  test("of every caller finds what the lists of that caller show, and nothing else", async () => {
    const texts = ["a", "e", "report", "res"];
    for (const [who, caller] of Object.entries(callersIn(world))) {
      const manage = actingAs(world.db, caller);
      const isMember = caller.role === "member";
      const people = isMember ? [] : (await manage.pagePeople({})).data;
      const named = [
        ...(isMember ? [] : await listOrganizations(manage)).map(({ id, slug, name }) => ({ id, texts: [slug, name] })),
        ...(isMember ? [] : await listTeams(manage)).map(({ id, name }) => ({ id, texts: [name] })),
        ...people.map(({ id, name, email }) => ({ id, texts: [name ?? "", email ?? ""] })),
        ...(await listKeys(manage))
          .filter(({ state }) => state === "active")
          .map(({ id, name }) => ({ id, texts: [name] })),
      ];
      for (const text of texts) {
        const { data } = await manage.search({ text, limit: 50 });
        const found = data.filter(({ kind }) => kind !== "model").map(({ id }) => id);
        const listed = named.filter((one) => one.texts.some((name) => name.toLowerCase().includes(text)));
        expect([who, text, found.toSorted()]).toEqual([who, text, listed.map(({ id }) => id).toSorted()]);
        const models = (await manage.listModels()).data.filter(({ id }) => id.includes(text)).map(({ id }) => id);
        expect([who, data.filter(({ kind }) => kind === "model").map(({ id }) => id)]).toEqual([who, models]);
      }
      const requests = (await manage.pageRequests({})).data.map(({ id }) => id);
      expect([who, (await manage.search({ text: requestId })).data.map(({ id }) => id)]).toEqual([who, requests]);
    }
  });
});

test("requests have the names of their key, its person and its team", async () => {
  const { manage, people, keys, teams } = world;
  const [listed] = (await manage.pageRequests({})).data;
  expect(listed).toMatchObject({ keyId: keys.key, key: "laptop", personId: people.ann, person: "ann" });
  expect([listed!.teamId, listed!.team]).toEqual(listed!.teamId === null ? [null, null] : [teams.research, "research"]);
  expect(await manage.findRequest({ id: requestId })).toMatchObject({ key: "laptop", person: "ann" });
});

test("keys have the name of their person, and are listed by person and by team", async () => {
  const { manage, people, keys, teams } = world;
  const { id: free } = await manage.createKey({ organization: "acme", name: "free", team: "support" });
  const idsOf = async (input: object) => (await manage.pageKeys(input)).data.map(({ id }) => id);
  expect(await idsOf({ person: people.ann })).toEqual([keys.key]);
  expect(await idsOf({ team: teams.support })).toEqual([free]);
  expect(await idsOf({ team: "research", organization: "acme" })).toEqual([keys.key]);
  expect(await manage.findKey({ id: keys.key })).toMatchObject({ person: "ann" });
  expect(await manage.findKey({ id: free })).toMatchObject({ person: null });
});

test("a member sees keys of nobody else by asking for another person's", async () => {
  const bob = actingAs(world.db, callersIn(world)["member, a colleague"]);
  expect(bob.pageKeys({ person: world.people.ann })).rejects.toMatchObject({ code: "resource_not_found" });
  expect((await bob.pageKeys({ person: world.people.bob })).data).toMatchObject([{ name: "bob's reports" }]);
});

test("people are listed by the team of the membership that counts", async () => {
  const { manage, people, teams } = world;
  const namesIn = async (team: string) => (await manage.pagePeople({ team })).data.map(({ name }) => name);
  expect(await namesIn(teams.research)).toEqual(["ann", "lea"]);
  // A membership given by an administrator takes precedence over one given by a rule.
  await manage.giveMembership({ person: people.lea, organization: "acme", role: "member", team: "support" });
  expect([await namesIn(teams.research), await namesIn(teams.support)]).toEqual([["ann"], ["lea"]]);
  await manage.takeMembership({ person: people.lea, organization: "acme" });
  expect(await namesIn(teams.research)).toEqual(["ann", "lea"]);
});

test("the audit log has the names that its IDs have now, and the chain covers none of them", async () => {
  const { manage, people, teams, acme } = world;
  const lea = actingAs(world.db, callersIn(world)["organization-admin"]);
  await lea.updateTeam({ team: teams.support, name: "helpers" });
  const last = async () => (await manage.pageAudit({ limit: 1 })).data[0]!;
  expect(await last()).toMatchObject({
    actor: `person:${people.lea}`,
    actorName: "lea",
    subject: teams.support,
    subjectName: "helpers",
    organizationId: acme,
    organization: "acme",
  });
  const made = await manage.createKey({ organization: "acme", name: "tools", person: people.lea });
  const [created] = (await manage.pageAudit({ limit: 1 })).data;
  expect([created!.subject, created!.names]).toEqual([made.id, { [people.lea]: "lea", [teams.research]: "research" }]);
  const { hash } = (await manage.pageAudit({ limit: 5 })).data.find(({ subject }) => subject === teams.support)!;
  await manage.forgetPerson({ person: people.lea });
  const [forgotten] = (await manage.pageAudit({ limit: 5 })).data.filter(({ subject }) => subject === made.id);
  expect(forgotten!.names).toEqual({ [teams.research]: "research" });
  const renamed = (await manage.pageAudit({ limit: 5 })).data.find((entry) => entry.hash === hash)!;
  expect([renamed.actor, renamed.actorName]).toEqual([`person:${people.lea}`, null]);
  expect((await last()).subjectName).toBeNull();
});

test("filters of organizations count for those who see one alone, too", async () => {
  for (const who of ["organization-admin", "operator organization-admin"] as const) {
    const manage = actingAs(world.db, callersIn(world)[who]);
    const found = async (filter: Parameters<typeof manage.pageOrganizations>[0]) =>
      (await manage.pageOrganizations(filter)).data.map(({ slug }) => slug);
    expect(await found({})).toEqual(["acme"]);
    expect(await found({ status: "active", plan: "starter" })).toEqual(["acme"]);
    expect(await found({ status: "suspended" })).toEqual([]);
    expect(await found({ plan: "pro" })).toEqual([]);
    expect(await found({ over: 1 })).toEqual([]);
    expect(await found({ cursor: world.acme })).toEqual([]);
  }
});

test("a team that was removed stays out of a key's budget when the limits of its person change", () =>
  apart(world, async ({ root: manage }) => {
    const { teams, people, keys } = world;
    const teamOf = async (id: string) => (await manage.findKey({ id })).team;
    expect(await teamOf(keys.key)).toEqual({ id: teams.research, name: "research" });
    await manage.removeTeam({ team: teams.research });
    expect(await teamOf(keys.key)).toBeNull();
    await manage.updatePersonLimits({ person: people.ann, organization: "acme", own: { week: "100" } });
    expect(await teamOf(keys.key)).toBeNull();
    await manage.giveMembership({ person: people.ann, organization: "acme", role: "member", team: teams.support });
    expect(await teamOf(keys.key)).toMatchObject({ id: teams.support });
    await manage.takeMembership({ person: people.ann, organization: "acme" });
    expect(await teamOf(keys.key)).toBeNull();
  }));
