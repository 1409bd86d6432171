/**
 * Sets the limits of subjects (docs/limits.md). Each act locks the subject and its organization first, so that acts run
 * one after another, and then takes the ledger's lock.
 */
import { isDeepStrictEqual } from "node:util";
import type {
  LimitAdministration,
  LimitSubject,
  LimitsChange,
  LimitValues,
  NewRaise,
  SubjectLimits,
} from "../../admin/store/limits.ts";
import type { Budget } from "../../core/store/budget.ts";
import { bare, uuidOf } from "../../core/store/ids.ts";
import { budgetShown } from "./budgets.ts";
import { type Changeable, change, type Made } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { changeableKey } from "./keys.ts";
import { limitedBy, readLimits, readPage, uuidOfLimitSubject } from "./limit-reading.ts";
import { changeableOrganization } from "./organization-change.ts";
import { arrayOf, writeValue } from "./own-value.ts";
import { limitedPerson } from "./person.ts";
import { refreshLimits } from "./refresh-limits.ts";
import { announceChange } from "./revocations.ts";
import { pageOf, unwrapErrors } from "./rows.ts";
import { changeableTeam } from "./teams.ts";

/**
 * Makes the administration of limits. `actingOn` returns the same database for an act on this person; that database may
 * refuse the act because it would raise one of the actor's own limits.
 */
export function limitValues(db: Database, actingOn: (person: string) => Database = () => db): LimitAdministration {
  return {
    limitsOf: (subject) => unwrapErrors(readLimits(db, subject)),

    async pageLimits({ organizationId, of, after, limit }) {
      const found = await unwrapErrors(readPage(db, { subject: of, organizationId }, { after, limit: limit + 1 }));
      return pageOf(found, limit);
    },

    updateLimits: (subject, { actor, version }, patch) =>
      change(
        subject.subject === "person" ? actingOn(subject.id) : db,
        changeableLimits(subject),
        { id: subject.id, actor, version },
        (tx, _, at) => setLimits(tx, { subject, actor, at }, patch),
      ),
  };
}

interface Setting {
  subject: LimitSubject;
  actor: string;
  at: Date;
}

/** Makes the change of limits itself; the locks of `changeableLimits` must be held. Returns null if nothing differs. */
export async function setLimits(
  tx: Transaction,
  { subject, actor, at }: Setting,
  patch: (now: SubjectLimits, organization: SubjectLimits) => LimitsChange,
): Promise<Made<SubjectLimits> | null> {
  const now = (await readLimits(tx, subject))!;
  const whole = { ...subject, subject: "organization", id: subject.organizationId } as const;
  const differing = changesOf(now, patch(now, (await readLimits(tx, whole))!));
  if (differing.length === 0) return null;
  const unsummed = await write(tx, { now, differing, at, actor });
  const details = { ...audited(differing, "to"), before: audited(differing, "from") };
  const owner = bare(subject.organizationId, "org_");
  return { action: `${subject.subject}.limits`, details, owner, unsummed };
}

/**
 * A change of one stored value of limits: the value's kind, the models that it is for, its limits before (`from`) and
 * after (`to`). Null: there is no such value.
 */
interface Differing {
  kind: "own" | "keys" | "members" | "raise";
  models: string;
  from: Budget | NewRaise | null;
  to: Budget | NewRaise | null;
}

function changesOf(now: LimitValues, wanted: LimitsChange): Differing[] {
  const single = (["own", "keys", "members"] as const).map(
    (kind): Differing => ({ kind, models: "", from: now[kind], to: wanted[kind] ?? now[kind] }),
  );
  const patterns = wanted.models ?? now.models;
  const models = [...new Set([...now.models.keys(), ...patterns.keys()])].map(
    (models): Differing => ({
      kind: "own",
      models,
      from: now.models.get(models) ?? null,
      to: patterns.get(models) ?? null,
    }),
  );
  const raises = wanted.raises ?? now.raises;
  const raised = [...new Set([...now.raises, ...raises].map(({ models }) => models))].map((models): Differing => {
    const of = (all: readonly NewRaise[]) => all.find((one) => one.models === models) ?? null;
    return { kind: "raise", models, from: of(now.raises), to: of(raises) };
  });
  return [...single, ...models, ...raised].filter(({ from, to }) => !isDeepStrictEqual(said(from), said(to)));
}

/** The part of a value that is compared to find out whether it changes. */
const said = (value: Differing["from"]) =>
  value && "until" in value ? { limits: value.limits, until: value.until } : value;

interface Writing {
  now: SubjectLimits;
  differing: readonly Differing[];
  at: Date;
  actor: string;
}

/** Writes the values. Returns the ledger's subjects for which `sumEarlier` must follow the commit. */
async function write(tx: Transaction, { now, differing, at, actor }: Writing): Promise<string[]> {
  const owner = bare(now.organizationId, "org_");
  const subject = uuidOfCounted(now);
  if (now.subject === "person") await tx.query(namingMember, [subject, owner, bare(now.id, "per_")]);
  for (const { kind, models, to } of differing)
    await writeValue(tx, { subject, owner, at, actor }, { kind, models, to });
  const isAll = differing.some(({ kind }) => kind === "keys" || kind === "members");
  const unsummed = await refreshLimits(tx, owner, isAll ? null : [subject]);
  for (const { kind, models, to } of differing) {
    if (kind === "raise" || models === "") continue;
    const limits = arrayOf(limitedBy((to as Budget | null) ?? empty));
    const [row] = await tx.query<{ unsummed: boolean; id: string }>(settingModels, [subject, models, owner, limits]);
    if (row!.unsummed) unsummed.push(row!.id);
  }
  if (differing.some(({ kind, models }) => kind === "raise" || models !== "")) {
    await tx.query("select usage_limits_changed(array[$1::uuid])", [subject]);
    await announceChange(tx, now.subject === "key" ? now.id : now.organizationId);
  }
  return unsummed;
}

const empty = {} as Budget;

const namingMember = `insert into usage_subject (subject_id, organization_id, person_id) values ($1, $2, $3)
  on conflict (subject_id) do update set person_id = excluded.person_id`;

const settingModels = `select usage_set_models_subject($1, $2, $3, $4) as unsummed, limit_counted($1, $2) as id`;

function uuidOfCounted({ countedId }: SubjectLimits): string {
  const [prefix = ""] = /^[a-z]+_/.exec(countedId) ?? [];
  return uuidOf(countedId, prefix as "org_")!;
}

function audited(differing: readonly Differing[], side: "from" | "to"): Record<string, unknown> {
  return Object.fromEntries(
    differing.map(({ kind, models, [side]: value }) => {
      const name = models === "" ? kind : `${kind} ${models}`;
      if (value === null) return [name, null];
      if (!("until" in value)) return [name, budgetShown(value)];
      return [name, { limits: budgetShown(value.limits), until: value.until.toISOString() }];
    }),
  );
}

export function changeableLimits(subject: LimitSubject): Changeable<object, SubjectLimits, "closed"> {
  const kind = kinds[subject.subject] as Changeable<object, unknown, "closed">;
  return {
    ...kind,
    async lock(tx, id) {
      const row = await kind.lock(tx, id);
      if (row === null || typeof row === "string" || uuidOfLimitSubject(subject) === null) return row;
      const owner = bare(subject.organizationId, "org_");
      const [found] = await tx.query<{ status: string }>(
        "select status from organization where id = $1 for no key update",
        [owner],
      );
      if (!found) return null;
      return found.status === "closed" ? "closed" : row;
    },
    read: (tx) => readLimits(tx, subject),
  };
}

const kinds = {
  organization: changeableOrganization,
  team: changeableTeam,
  person: limitedPerson,
  key: changeableKey,
};
