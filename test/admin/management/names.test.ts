// Lists show the names that people use for things, beside their IDs; things that were erased have no name any more.
import { expect, setDefaultTimeout, test } from "bun:test";
import { recordRequest, worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(120_000);
let requestId: string;
const world = worldForTests(async (world) => {
  requestId = await recordRequest(world);
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
  expect((await bob.pageKeys({ person: world.people.bob })).data).toEqual([]);
});

test("people are listed by the team of the membership that counts", async () => {
  const { manage, people, teams } = world;
  const namesIn = async (team: string) => (await manage.pagePeople({ team })).data.map(({ name }) => name);
  expect(await namesIn(teams.research)).toEqual(["ann", "lea"]);
  // A membership given by hand takes precedence over one given by a rule.
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
