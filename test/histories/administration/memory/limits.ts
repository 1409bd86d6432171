// Does in memory what src/stores/postgres/limit-values.ts and limit-reading.ts do.

import { isDeepStrictEqual } from "node:util";
import { budgetNames, noBudget } from "../../../../src/admin/store/budget.ts";
import type {
  LimitAdministration,
  LimitSubject,
  LimitsChange,
  SubjectLimits,
} from "../../../../src/admin/store/limits.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { overPlan } from "../../../../src/core/store/rates.ts";
import { audit, inForceOf, limitsChanged, refreshLimits, saysAny, setValue, subjectsOf } from "./acts.ts";
import { lockKey } from "./keys.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { limitValueOf, memberId, type Reading, smallPlan, teamIn, type ValueRow } from "./tables.ts";
import { lockTeam } from "./teams.ts";

export function limits(
  db: MemoryDatabase,
  actingOn: (person: string) => MemoryDatabase,
): Pick<LimitAdministration, "limitsOf" | "updateLimits"> {
  const { memory } = db;
  return {
    async limitsOf(subject) {
      await memory.scheduler.turn();
      return readLimits(memory, subject);
    },

    updateLimits: (subject, { version, actor }, patch) =>
      (subject.subject === "person" ? actingOn(subject.id) : db).transaction(async (tx) => {
        const isThere = await locked[subject.subject](tx, subject);
        if (!isThere) return null;
        await tx.lock(subject.organizationId, "no key update");
        const status = tx.get("organizations", subject.organizationId)?.status;
        if (!status) return null;
        if (status === "closed") return "closed";
        const now = readLimits(tx, subject);
        if (!now) return null;
        if (typeof version === "number" && now.version !== version) return { stale: now };
        const whole = { ...subject, subject: "organization", id: subject.organizationId } as const;
        const wanted = patch(now, readLimits(tx, whole)!);
        const rows = changed(tx, now, wanted, actor);
        if (rows.length === 0) return now;
        await write(tx, now, rows);
        bump(tx, subject);
        await audit(tx);
        return readLimits(tx, subject);
      }),
  };
}

const locked: Record<SubjectLimits["subject"], (tx: MemoryTransaction, subject: LimitSubject) => Promise<boolean>> = {
  async organization(tx, { id }) {
    await tx.lock(id);
    return tx.get("organizations", id) !== undefined;
  },
  team: async (tx, { id }) => (await lockTeam(tx, id)) !== null,
  key: async (tx, { id }) => (await lockKey(tx, id)) !== null,
  async person(tx, { id }) {
    await tx.lock(id, "no key update");
    return tx.get("people", id) !== undefined;
  },
};

type Place = Pick<ValueRow, "kind" | "models">;
/** A limit value that differs from the stored one; null: it is taken away. */
type Change = Place & { to: ValueRow | null };

function changed(tx: MemoryTransaction, now: SubjectLimits, wanted: LimitsChange, setBy: string): Change[] {
  const subjectId = now.countedId;
  const row = (place: Place, limits: Budget | null | undefined, until: Date | null = null): Change => ({
    ...place,
    to:
      limits && (saysAny(limits) || place.kind === "raise")
        ? { ...place, subjectId, organizationId: now.organizationId, limits, until, setAt: tx.now, setBy }
        : null,
  });
  const single = (["own", "keys", "members"] as const)
    .filter((kind) => wanted[kind] !== undefined)
    .map((kind) => row({ kind, models: "" }, wanted[kind]));
  const patterns = wanted.models ?? now.models;
  const models = [...new Set([...now.models.keys(), ...patterns.keys()])].map((one) =>
    row({ kind: "own", models: one }, patterns.get(one)),
  );
  const raises = wanted.raises ?? now.raises;
  const raised = [...new Set([...now.raises, ...raises].map((one) => one.models))].map((one) => {
    const to = raises.find((raise) => raise.models === one);
    return row({ kind: "raise", models: one }, to?.limits, to?.until);
  });
  const said = (one: ValueRow | null | undefined) => (one ? [one.limits, one.until] : [noBudget, null]);
  return [...single, ...models, ...raised].filter(
    ({ to, kind, models }) => !isDeepStrictEqual(said(to), said(standing(tx, now, { kind, models }))),
  );
}

function standing(tx: Reading, { countedId }: SubjectLimits, { kind, models }: Place): ValueRow | undefined {
  const row = tx.get("values", `${countedId} ${kind} ${models}`);
  return row?.until && row.until <= tx.now ? undefined : row;
}

async function write(tx: MemoryTransaction, now: SubjectLimits, changes: readonly Change[]): Promise<void> {
  const { countedId: subjectId, organizationId } = now;
  if (now.subject === "person") {
    const { budget = noBudget, teamId = null } = tx.get("subjects", subjectId) ?? {};
    tx.set("subjects", subjectId, { id: subjectId, organizationId, personId: now.id, teamId, budget });
  }
  for (const { to, ...place } of changes) setValue(tx, { subjectId, ...place }, to);
  const isAll = changes.some(({ kind }) => kind === "keys" || kind === "members");
  await refreshLimits(tx, organizationId, isAll ? null : [subjectId]);
  if (changes.some(({ kind, models }) => kind === "raise" || models !== "")) await limitsChanged(tx);
}

function bump(tx: MemoryTransaction, { subject, id }: LimitSubject): void {
  if (subject === "person") {
    const row = tx.get("people", id)!;
    tx.set("people", id, { ...row, version: row.version + 1 });
    return;
  }
  const table = `${subject}s` as "organizations" | "teams" | "keys";
  const row = tx.get(table, id)!;
  tx.set(table, id, { ...row, version: row.version + 1 } as never);
}

export function readLimits(of: Reading, subject: LimitSubject): SubjectLimits | null {
  const { organizationId, id } = subject;
  const found = named(of, subject);
  if (!found) return null;
  const countedId = subject.subject === "person" ? memberId(organizationId, id) : id;
  const rows = of
    .all("values")
    .filter((row) => row.subjectId === countedId && (!row.until || row.until > of.now))
    .toSorted((one, other) => (one.models < other.models ? -1 : 1));
  const ofKind = (kind: ValueRow["kind"]) => limitValueOf(of, countedId, kind) ?? noBudget;
  return {
    ...subject,
    ...found,
    countedId,
    countedModels: new Map(),
    ...inForce(of, subject, countedId),
    own: ofKind("own"),
    keys: ofKind("keys"),
    members: ofKind("members"),
    models: new Map(
      rows.filter((row) => row.kind === "own" && row.models).map((row) => [row.models, row.limits] as const),
    ),
    raises: rows.flatMap(({ kind, until, models, limits, setAt, setBy }) =>
      kind === "raise" ? [{ models, limits, until: until!, setAt, setBy }] : [],
    ),
  };
}

function named(of: Reading, { subject, id }: LimitSubject): Pick<SubjectLimits, "name" | "version"> | null {
  if (subject === "team") return teamIn(of, id);
  const row = subject === "person" ? of.get("people", id) : subject === "key" ? of.get("keys", id) : null;
  if (subject !== "organization") return row ? { name: row.name, version: row.version } : null;
  const organization = of.get("organizations", id);
  return organization ? { name: organization.slug, version: organization.version } : null;
}

function inForce(of: Reading, { subject, organizationId }: LimitSubject, countedId: string) {
  if (subject !== "organization") {
    const one = subjectsOf(of, organizationId, [countedId]).find(({ id }) => id === countedId);
    return one ? inForceOf(of, organizationId, one) : { inForce: noBudget, origins: nowhere };
  }
  const plan = of.get("organizations", organizationId)?.plan === smallPlan.name ? smallPlan : noBudget;
  const own = limitValueOf(of, organizationId, "own") ?? noBudget;
  const limits = budgetNames.map((name) => [name, overPlan(plan[name], own[name])]);
  const origins = budgetNames.map((name) => [name, own[name] !== null ? "own" : plan[name] !== null ? "plan" : null]);
  return { inForce: Object.fromEntries(limits) as Budget, origins: Object.fromEntries(origins) as typeof nowhere };
}

const nowhere = noBudget as SubjectLimits["origins"] & Budget;
