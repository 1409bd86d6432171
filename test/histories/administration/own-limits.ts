// Histories of an organization's administrator who may change the limits of all, on a database: what counts for herself never
// rises by an act of hers. Others act between, so that there are raises, and teams to move to.

import { management } from "../../../src/admin/management/client.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { ownLimitsOf } from "../../../src/admin/management/own-limits.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { administration, administrationStores } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { managementStores } from "../../admin/management/stores.ts";
import { type Draw, drawnFrom } from "./acts.ts";
import type { StoredHistory } from "./stored.ts";

const rounds = 10;
const hour_ms = 3_600_000;
const uuid = () => Bun.randomUUIDv7();

/** `isBound`: false takes the rule away. */
export async function ownLimitsHistory(db: Database, seed: number, isBound = true): Promise<StoredHistory> {
  const draw = drawnFrom(seed);
  // As src/node binds whoever acts.
  const as = (actor: string, within: string | null = null) =>
    management({
      ...{
        ...managementStores(db),
        ...administrationStores(db, { own: isBound ? ownLimitsOf({ actor, within }) : null }),
      },
      ...{ catalog: () => ({ plans: new Map(), models: [], upstreams: [] }), actor, within },
      now_ms: Date.now,
      newUuid: uuid,
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    });
  const root = as("cli:root");
  const organizationId = idOf(uuid(), "org_");
  const organization = `org-${uuid()}`;
  const named = { id: organizationId, slug: organization, name: organization };
  await administration(db).createOrganization({ ...named, plan: null, actor: "cli:root" });
  const limits = () => ({ week: 1 + draw(1000) });
  const team = async (name: string) =>
    (await root.createTeam({ organization, name, limits: limits(), memberLimits: limits() })).id;
  const teams = [await team("first"), await team("second")];
  const claims = { issuer: "https://login.example", subject: uuid(), kind: "person", memberships: [] } as const;
  const { id: person } = (await people(db).confirm({ id: idOf(uuid(), "per_"), ...claims })).person;
  await root.giveMembership({ person, organization, role: "organization-admin", team: teams[0]! });
  if (draw(2) === 0) await root.updateMemberDefault({ organization, limits: limits() });
  const she = as(`person:${person}`, organizationId);
  const own: Own = { organization, person, teams, limits };
  const history: StoredHistory = { acts: 0, refusals: 0, violation: null };
  for (let round = 0; round < rounds && history.violation === null; round++) {
    const isHers = draw(3) > 0;
    const [words, act] = anyAct(isHers ? she : root, draw, own);
    const before = isHers ? await countedOf(root, own) : Number.POSITIVE_INFINITY;
    const isDone = await act().then(
      () => true,
      (thrown: unknown) => {
        if (thrown instanceof ManagementError) return false;
        throw thrown;
      },
    );
    history.acts += 1;
    if (!isDone) history.refusals += 1;
    const after = await countedOf(root, own);
    if (after > before) history.violation = `${words} raised her own limit of a week from ${before} to ${after}`;
  }
  return history;
}

interface Own {
  organization: string;
  person: string;
  teams: string[];
  limits(): { week: number };
}

function anyAct(by: Management, draw: Draw, { organization, person, teams, limits }: Own) {
  const week = draw(4) === 0 ? { week: null } : limits();
  const team = teams[draw(teams.length)]!;
  const until = new Date(Date.now() + hour_ms * (1 + draw(3))).toISOString();
  const raise = { limits: { week: 1 + draw(2000) }, until };
  const membership = { person, organization, role: "organization-admin" } as const;
  const acts: [string, () => Promise<unknown>][] = [
    ["updatePersonLimits", () => by.updatePersonLimits({ person, organization, limits: week })],
    ["updateMemberDefault", () => by.updateMemberDefault({ organization, limits: week })],
    ["updateKeyDefault", () => by.updateKeyDefault({ organization, limits: week })],
    ["updateTeam limits", () => by.updateTeam({ team, organization, limits: week })],
    ["updateTeam member_limits", () => by.updateTeam({ team, organization, memberLimits: week })],
    ["updateTeam key_limits", () => by.updateTeam({ team, organization, keyLimits: week })],
    ["removeTeam", () => by.removeTeam({ team, organization })],
    ["raisePerson", () => by.raisePerson({ person, organization, ...raise })],
    ["raisePerson --end", () => by.raisePerson({ person, organization, end: true })],
    ["raiseTeam", () => by.raiseTeam({ team, organization, ...raise })],
    ["giveMembership with a team", () => by.giveMembership({ ...membership, team })],
    ["giveMembership without a team", () => by.giveMembership(membership)],
    ["takeMembership", () => by.takeMembership({ person, organization })],
  ];
  return acts[draw(acts.length)]!;
}

interface Limited {
  limits: { week: number | null };
  raise?: { limits: { week: number | null } } | null;
}

/** The least limit of a week that counts for her with a key to come: that of her, of her team, and of the key. */
async function countedOf(root: Management, { person, organization }: Own): Promise<number> {
  const known = await root.findPerson({ person });
  const team = known.memberships.find((one) => one.organizationId !== null)?.team?.id;
  const ofTeam = team ? await root.findTeam({ team }) : null;
  const ofKeys = ofTeam?.keyLimits ?? (await root.findKeyDefault({ organization })).limits;
  const all: Limited[] = [...known.limits, ...(ofTeam ? [ofTeam] : []), ...(ofKeys ? [{ limits: ofKeys }] : [])];
  return Math.min(...all.map(weekOf));
}

function weekOf({ limits: { week }, raise }: Limited): number {
  if (week === null) return Number.POSITIVE_INFINITY;
  return Math.max(week, raise?.limits.week ?? 0);
}
