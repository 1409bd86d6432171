/**
 * Checks the whole table of roles, verbs and kinds of keys in docs/access.md: every verb by ten callers, and verbs that
 * name a key with each kind of key. Each case uses the same organizations, people and keys, and is rolled back. The
 * outcome must be that of the page, and that of the rules as this file states them independently.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireRole } from "../../../src/admin/http/gate.ts";
import { tryName, tryRoles } from "../../../src/admin/http/try-model.ts";
import type { Caller } from "../../../src/admin/management/caller.ts";
import { perform } from "../../../src/admin/management/verb.ts";
import { type VerbName, verbs } from "../../../src/admin/management/verbs.ts";
import { type KeyKind, keyKinds } from "../../../src/core/store/directory.ts";
import { trying } from "../../../src/node/trying.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { inMoney } from "../../harness/limits.ts";
import { rolledBack } from "../../stores/postgres/rolled-back.ts";
import { recordRequest, type Who, worldForTests } from "./own-world.ts";
import { actingAs, callersIn, contextFor, inside, tokenKeyOf } from "./world.ts";

setDefaultTimeout(300_000);
const page = join(import.meta.dir, "../../../docs/access.md");
const build = "SLUICE_WRITE_DOCS=1 node_modules/.bin/bun test test/admin/management/access.test.ts";
const tomorrow = new Date(Date.now() + 86_400_000).toISOString();

let book: ReturnType<typeof ledger>;
let requestId: string;
let operatorId: string;
let limitRequestId: string;
let invitationId: string;
const world = worldForTests(async (world) => {
  book = ledger(world.db, { recovery: "checkpoint" });
  const { manage, people, teams, keys } = world;
  await manage.createPlan({ name: "small", week: "0.001" });
  await manage.createPlan({ name: "spare", week: "1" });
  await manage.setPlan({ organization: "acme", plan: "small" });
  await manage.giveMembership({ person: people.ann, organization: "acme", role: "member", team: "research" });
  const members = { ...weekOf(1_000), requestsPerMinute: 60 };
  await manage.updateOrganizationLimits({ ...acme, members, keys: weekOf(500) });
  await manage.updateTeamLimits({ team: teams.research, own: weekOf(5_000) });
  await manage.updateKeyLimits({ id: keys.key, own: weekOf(400) });
  await manage.setNotices({ ...hook, url: "https://hooks.example.com/sluice", shares: [80] });
  await manage.drainUpstream({ upstream: "gpu-1" });
  operatorId = (await manage.createOperator({ name: "zoe", role: "viewer" })).id;
  const ann = actingAs(world.db, callersIn(world).member);
  limitRequestId = (await ann.requestLimit({ limit: "requests_per_minute", amount: "120", message: "The release" })).id;
  invitationId = (await manage.createInvitation({ email: "zed@example.com", ...acme })).id;
  requestId = await recordRequest(world);
});

const acme = { organization: "acme" };
const hook = { ...acme, name: "webhook" };
const weekOf = (week: number) => inMoney({ week });
type Row = VerbName | typeof tryName;

/**
 * The input of each verb. It names an object of the organization acme, of its team `research`, or of Ann. `id` is one
 * of Ann's keys.
 */
const inputs: Record<VerbName, (id: string) => object> = {
  pageOrganizations: () => ({}),
  createOrganization: () => ({ slug: "new" }),
  findOrganization: () => acme,
  suspendOrganization: () => acme,
  resumeOrganization: () => acme,
  renameOrganization: () => ({ ...acme, name: "Acme" }),
  updatePolicies: () => ({ ...acme, key_lifetime_max_days: 90 }),
  closeOrganization: () => acme,
  setPlan: () => ({ ...acme, plan: "pro" }),
  setAnchor: () => ({ ...acme, anchor: "2026-12-01" }),
  listZones: () => ({}),
  updateCalendar: () => ({ ...acme, zone: "Europe/Berlin" }),
  setExtraUsage: () => ({ ...acme, cap: "1" }),
  pageKeys: () => acme,
  createKey: () => ({ ...acme, name: "new", expires_at: tomorrow }),
  findKey: (id) => ({ id }),
  updateKey: (id) => ({ id, name: "new" }),
  rotateKey: (id) => ({ id }),
  revokeKey: (id) => ({ id }),
  pageTeams: () => acme,
  createTeam: () => ({ ...acme, name: "new" }),
  findTeam: () => ({ team: world.teams.research }),
  updateTeam: () => ({ team: world.teams.research, name: "science" }),
  removeTeam: () => ({ team: world.teams.research }),
  findOrganizationLimits: () => acme,
  updateOrganizationLimits: () => ({ ...acme, members: weekOf(2_000) }),
  findTeamLimits: () => ({ team: world.teams.research }),
  updateTeamLimits: () => ({ team: world.teams.research, own: weekOf(6_000) }),
  findKeyLimits: (id) => ({ id }),
  updateKeyLimits: (id) => ({ id, own: weekOf(600) }),
  findPersonLimits: () => ({ person: world.people.ann, ...acme }),
  updatePersonLimits: () => ({ person: world.people.ann, ...acme, own: weekOf(2_000) }),
  requestLimit: () => ({ limit: "week", of: "organization", message: "The release" }),
  pageLimitRequests: () => acme,
  findLimitRequest: () => ({ id: limitRequestId }),
  approveLimitRequest: () => ({ id: limitRequestId, until: tomorrow }),
  declineLimitRequest: () => ({ id: limitRequestId, reason: "not this month" }),
  withdrawLimitRequest: () => ({ id: limitRequestId }),
  readUsage: () => acme,
  adjustUsage: () => ({ ...acme, window: "week", amount: "-1", reason: "a test" }),
  checkUsage: () => ({ full: false }),
  pageRequests: () => acme,
  findRequest: () => ({ id: requestId }),
  reportUsage: () => acme,
  listPlans: () => ({}),
  createPlan: () => ({ name: "new", week: "1" }),
  findPlan: () => ({ name: "spare" }),
  updatePlan: () => ({ name: "spare", week: "2" }),
  removePlan: () => ({ name: "spare" }),
  planHistory: () => ({ name: "spare" }),
  listModels: () => ({}),
  reportUpstreams: () => acme,
  listDrains: () => ({}),
  drainUpstream: () => ({ upstream: "gpu-1" }),
  resumeUpstream: () => ({ upstream: "gpu-1" }),
  listNodes: () => ({}),
  getFleet: () => ({}),
  showConfiguration: () => ({}),
  pageNotices: () => ({}),
  findNotices: () => hook,
  setNotices: () => ({ ...hook, url: "https://hooks.example.com/other", shares: [90] }),
  testNotices: () => hook,
  removeNotices: () => hook,
  pageAudit: () => acme,
  auditHead: () => ({}),
  pageOperators: () => ({}),
  createOperator: () => ({ name: "new", role: "viewer" }),
  findOperator: () => ({ id: operatorId }),
  rotateOperator: () => ({ id: operatorId }),
  revokeOperator: () => ({ id: operatorId }),
  pagePeople: () => acme,
  findPerson: () => ({ person: world.people.ann }),
  suspendPerson: () => ({ person: world.people.ann }),
  resumePerson: () => ({ person: world.people.ann }),
  forgetPerson: () => ({ person: world.people.ann }),
  giveMembership: () => ({ person: world.people.ann, ...acme, role: "organization-admin" }),
  takeMembership: () => ({ person: world.people.ann, ...acme }),
  createInvitation: () => ({ email: "new@example.com", ...acme }),
  pageInvitations: () => acme,
  revokeInvitation: () => ({ id: invitationId }),
  search: () => ({ ...acme, text: "ann" }),
  createConsoleLink: () => ({}),
};

/** The rules of docs/access.md, stated here independently. A verb that is not listed as refused is allowed. */
const refusedOn: Record<KeyKind, readonly Row[]> = {
  key: [],
  "sign-in": ["updateKey", "updateKeyLimits", "rotateKey", tryName],
  jwt: ["updateKey", "updateKeyLimits", "rotateKey", tryName, "revokeKey"],
};
/**
 * Verbs that would raise a limit that applies to Lea: she administers acme, is in `research` and has no limits of her
 * own.
 */
const raisesOwn: readonly Row[] = ["removeTeam", "updateTeamLimits", "updateOrganizationLimits"];
/** Verbs whose input names no object of acme. */
const ofNobody =
  /^(pageOrganizations|createOrganization|checkUsage|listPlans|\w+Plan|planHistory|\w+Drains|(drain|resume)Upstream|listModels|listNodes|getFleet|showConfiguration|pageNotices|auditHead|listZones|\w+Operators?|createConsoleLink)$/;
/** Verbs whose input names an object that belongs to Ann alone. */
const ofAnn = /^(findRequest|findPerson(Limits)?|(find|approve|decline|withdraw)LimitRequest)$/;
/**
 * Verbs with which people ask for higher limits of their own. Only a member of acme can ask, and only Ann can withdraw
 * the requests that Ann has made.
 */
const ofWhoAsks: readonly Row[] = ["requestLimit", "withdrawLimitRequest"];

type Outcome = "yes" | "403" | "404" | "409";

function expectedOf(row: Row, who: Who, role: Caller["role"], kind: KeyKind | null): Outcome {
  const roles = rolesOf(row);
  if (!roles.includes(role)) return "403";
  // This caller's organization does not have the limit that the input names.
  if (who === "organization-admin elsewhere" && row === "requestLimit") return "409";
  const isElsewhere = who === "organization-admin elsewhere" && !ofNobody.test(row);
  const isAnns = kind !== null || ofAnn.test(row);
  if (isElsewhere || (who === "member, a colleague" && isAnns)) return "404";
  if (kind && refusedOn[kind].includes(row)) return "409";
  if (who === "organization-admin" && raisesOwn.includes(row)) return "409";
  const asksNothing = ["command line", "operator admin", "operator organization-admin", "admin"];
  if (asksNothing.includes(who) && ofWhoAsks.includes(row)) return "409";
  if (who === "organization-admin" && row === "withdrawLimitRequest") return "409";
  // The test's node has no console, so it cannot make links to it.
  return row === "createConsoleLink" ? "409" : "yes";
}

const rolesOf = (row: Row): readonly string[] =>
  row === tryName ? tryRoles : verbs.find(({ name }) => name === row)!.roles;
const codes: Record<string, Outcome> = { missing_role: "403", resource_not_found: "404", wrong_state: "409" };

async function outcomeOf(act: () => Promise<unknown>): Promise<Outcome | string> {
  try {
    await act();
    return "yes";
  } catch (error) {
    const { code = "none", message } = error as { code?: string; message: string };
    return codes[code] ?? `${code}: ${message}`;
  }
}

/** Runs a row's verb as this caller, on a database object whose transaction the test then rolls back. */
function ask(db: Database, row: Row, caller: Caller, keyId: string): Promise<unknown> {
  const context = contextFor(db, caller, { book });
  if (row !== tryName) return perform(verbs.find(({ name }) => name === row)!, context, inputs[row](keyId));
  const authenticateSecret = async () => ({}) as never;
  const parts = { database: db, authenticateSecret, contextFor: () => context };
  return trying(parts).principalFor(caller, keyId, "192.0.2.1");
}

/** The limits that apply to the caller, as an administrator sees them. Null if the caller is not a member of acme. */
async function counting(db: Database, { actor, within }: Caller) {
  const person = actor.replace(/^person:/, "");
  if (person === actor || within !== world.acme) return null;
  const root = actingAs(db, callersIn(world)["command line"]);
  const { memberships } = await root.findPerson({ person });
  const team = memberships[0]?.team;
  return {
    limits: (await root.findPersonLimits({ person, ...acme })).inForce,
    team: team && (await root.findTeamLimits({ team: team.id })).inForce,
    newKeys: (await root.findOrganizationLimits(acme)).keys,
    key: person === world.people.ann ? (await root.findKeyLimits({ id: world.keys.key })).inForce : null,
    token: await tokenKeyOf(db, world.people.ann, world.acme),
  };
}

async function tried(row: Row, caller: Caller, kind: KeyKind | null): Promise<string> {
  const roles = { roles: rolesOf(row) as [Caller["role"]], summary: row };
  const gated = await outcomeOf(async () => requireRole(caller, roles));
  if (gated !== "yes") return gated;
  let outcome = "";
  await rolledBack(world.db.transaction, async (tx) => {
    const db = inside(world.db, tx);
    const isReading = row !== tryName && verbs.find(({ name }) => name === row)!.method === "get";
    const before = isReading ? null : await counting(db, caller);
    outcome = await outcomeOf(() => ask(db, row, caller, world.keys[kind ?? "key"]));
    // A person's own action never raises a limit that applies to that person. None of these actions lowers one, so the
    // limits must be unchanged.
    if (before)
      expect({ row, kind, actor: caller.actor, ...(await counting(db, caller)) }).toEqual({
        ...{ row, kind, actor: caller.actor, ...before },
      });
  });
  return outcome;
}

/**
 * The table in the format of docs/access.md. Callers with the same outcomes share a column. Verbs, or kinds of keys,
 * with the same outcomes share a row.
 */
function tableOf(callers: string[], tries: { verb: string; kind: string; cells: string[] }[]): string {
  const columns = Map.groupBy(callers.keys(), (at) => tries.map(({ cells }) => cells[at]).join());
  const heads = [...columns.values()].map((alike) => alike.map((at) => callers[at]).join(", "));
  const byKind = Map.groupBy(tries, ({ kind, cells }) => [kind, ...cells].join());
  const byVerbs = Map.groupBy(
    [...byKind.values()].map((alike) => ({ ...alike[0]!, verbs: alike.map(({ verb }) => verb).join(", ") })),
    ({ verbs, cells }) => [verbs, ...cells].join(),
  );
  const rows = [...byVerbs.values()].map((alike) => {
    const cells = [...columns.values()].map(([at]) => alike[0]!.cells[at!]!);
    return [alike[0]!.verbs, alike.map(({ kind }) => kind).join(", "), ...cells];
  });
  const head = ["verbs", "kind of key", ...heads];
  const [first, ...others] = [head, ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return [first, `|${"---|".repeat(head.length)}`, ...others].join("\n");
}

test("every verb, by ten callers and on three kinds of keys, does what the page says", async () => {
  const callers = Object.entries(callersIn(world)) as [Who, Caller][];
  expect(callers).toHaveLength(10);
  const rows: Row[] = [...verbs.map(({ name }) => name as VerbName), tryName];
  expect(Object.keys(inputs).sort()).toEqual(verbs.map(({ name }) => name).sort());
  const tries: { verb: string; kind: string; cells: string[] }[] = [];
  const wrong: string[] = [];
  for (const row of rows) {
    const isOnKey = row === tryName || verbs.find(({ name }) => name === row)!.onKey !== undefined;
    for (const kind of isOnKey ? keyKinds : [null]) {
      const cells: string[] = [];
      for (const [who, caller] of callers) {
        const seen = await tried(row, caller, kind);
        const expected = expectedOf(row, who, caller.role, kind);
        if (seen !== expected) wrong.push(`${row} on ${kind} by ${who}: ${seen}, expected ${expected}`);
        cells.push(seen);
      }
      tries.push({ verb: `\`${row}\``, kind: kind ? `\`${kind}\`` : "", cells });
    }
  }
  expect(wrong).toEqual([]);
  const table = tableOf(
    callers.map(([who]) => who),
    tries,
  );
  const written = readFileSync(page, "utf8");
  const now = written.replace(
    /(<!-- tried -->\n)[\s\S]*(\n<!-- end of what was tried -->)/,
    (_, from, to) => `${from}\n${table}\n${to}`,
  );
  if (process.env.SLUICE_WRITE_DOCS) writeFileSync(page, now);
  else if (written !== now) throw new Error(`docs/access.md is out of date: ${build}`);
});

test("a verb below /keys/{id} says what it does to the key", () => {
  const named = verbs.filter(({ path }) => path.startsWith("/keys/{id}"));
  expect(named.length).toBeGreaterThan(4);
  expect(named.filter(({ onKey }) => !onKey).map(({ name }) => name)).toEqual([]);
});
