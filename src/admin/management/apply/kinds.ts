/** The kinds of things that a file of organizations can create, with their fields in the order of the file. Pure. */
import Type from "typebox";
import type { Money } from "../../../core/inference/money.ts";
import { nullable, oneOf } from "../../../core/protocol/shapes/contract.ts";
import { organizationStatuses, scopes } from "../../../core/store/directory.ts";
import { Calendar } from "../../store/calendar.ts";
import type { NoticeDestination } from "../../store/notices.ts";
import { type LimitName, limitNames } from "../../store/shapes.ts";
import { zone } from "../calendars.ts";
import type { Key } from "../key.ts";
import { fileMoney } from "../money.ts";
import { destination_default } from "../notice-words.ts";
import { type Organization, plan_default } from "../organizations.ts";
import * as parse from "../parse.ts";
import type { Plan } from "../plans.ts";
import { name } from "../shapes.ts";
import type { Team } from "../team.ts";
import { type VerbName, verbNamed } from "../verbs.ts";
import { type Field, type Kind, type RemovableKind, setBy } from "./kind.ts";
import { type LimitsNow, limitsField } from "./limits.ts";

/** An organization with all its settings, which are read with several verbs. */
export interface WholeOrganization extends Organization {
  limits: LimitsNow | null;
  notices: NoticeDestination | null;
}

/** Makes a field whose value is money. */
function moneyBy<Now>(verb: VerbName, member: string, read: (now: Now) => Money | null): Field<Now> {
  const { schema, normal } = fileMoney;
  return setBy(verb, member, { schema, normal, read: (now) => fileMoney.read(read(now)), fresh: null });
}

const ofPlan = (limit: LimitName): Field<Plan> => {
  if (limit === "session" || limit === "week" || limit === "month")
    return moneyBy("updatePlan", limit, (plan) => plan[limit]);
  return setBy("updatePlan", limit, { read: (plan) => plan[countName[limit]], fresh: null });
};

const countName = {
  requests_per_minute: "requestsPerMinute",
  tokens_per_minute: "tokensPerMinute",
  concurrent_requests: "concurrentRequests",
} as const;

export const planKind: RemovableKind<Plan> = {
  word: "plan",
  creation: { verb: "createPlan", input: ({ name }) => ({ name }) },
  subject: ({ name }) => ({ name }),
  removes: "removePlan",
  version: ({ version }) => version,
  fields: Object.fromEntries(limitNames.map((limit) => [limit, ofPlan(limit)])),
};

const statusVerbs = {
  active: "resumeOrganization",
  suspended: "suspendOrganization",
  closed: "closeOrganization",
} as const satisfies Record<Organization["status"], VerbName>;

const { url, shares, key_expiry_days } = verbNamed("setNotices").takes.properties;

const { week_starts, month_starts } = Calendar.properties;

const notices: Field<WholeOrganization> = {
  schema: nullable(Type.Object({ url, shares, key_expiry_days }, { additionalProperties: false })),
  compares: "map",
  read: ({ notices }) =>
    notices && { url: notices.url, shares: notices.shares, key_expiry_days: notices.keyExpiryDays },
  fresh: null,
  normal: (value) => value && withNormalHook(value),
  member: null,
  sets: (value) =>
    value === null
      ? { verb: "removeNotices", input: { name: destination_default } }
      : { verb: "setNotices", input: { name: destination_default, ...(value as object) } },
};

function withNormalHook(value: { url?: string; shares?: number[] }): unknown {
  const { url, shares } = value;
  return {
    ...value,
    ...(url === undefined ? {} : { url: URL.parse(url)?.href ?? url }),
    ...(shares === undefined ? {} : { shares: [...new Set(shares)].sort((one, other) => one - other) }),
  };
}

const calendar: Field<WholeOrganization> = {
  schema: nullable(
    Type.Object(
      { zone, week_starts: Type.Optional(week_starts), month_starts: Type.Optional(month_starts) },
      { additionalProperties: false },
    ),
  ),
  read(one) {
    const written = one.nextCalendar ? one.nextCalendar.calendar : one.calendar;
    return written && { zone: written.zone, week_starts: written.weekStarts, month_starts: written.monthStarts };
  },
  // A new organization may get its calendar from the configuration, so the value is not known beforehand.
  fresh: undefined,
  normal: (value) => value && { week_starts: "monday", month_starts: 1, ...(value as object) },
  member: null,
  sets: (value) => ({
    verb: "updateCalendar",
    input: value === null ? { zone: null } : { week_starts: "monday", month_starts: 1, ...(value as object) },
  }),
};

export const organizationKind: Kind<WholeOrganization> = {
  word: "organization",
  creation: { verb: "createOrganization", input: ({ name: slug }) => ({ slug }) },
  subject: ({ name: organization }) => ({ organization }),
  version: ({ version }) => version,
  fields: {
    name: setBy("renameOrganization", "name", { schema: name("Display name."), read: (one) => one.name, fresh: null }),
    plan: setBy("setPlan", "plan", { read: (one) => one.plan, fresh: plan_default }),
    calendar,
    anchor: setBy("setAnchor", "anchor", {
      // An organization with a calendar has no anchor for its weeks and months.
      read: (one) => ((one.nextCalendar ?? one).calendar ? undefined : (one.nextAnchor ?? one).anchorAt.toISOString()),
      fresh: null,
    }),
    extra_usage_cap: moneyBy("setExtraUsage", "cap", ({ extraUsage }) => (extraUsage.enabled ? extraUsage.cap : null)),
    key_lifetime_max_days: setBy("updatePolicies", "key_lifetime_max_days", {
      read: (one) => one.keyLifetimeMaxDays,
      fresh: null,
    }),
    key_unused_max_days: setBy("updatePolicies", "key_unused_max_days", {
      read: (one) => one.keyUnusedMaxDays,
      fresh: null,
    }),
    keeps_content: setBy("updatePolicies", "keeps_content", {
      schema: Type.Boolean(),
      read: (one) => one.keepsContent,
      fresh: true,
    }),
    limits: limitsField("updateOrganizationLimits", true, (one) => one.limits),
    notices,
    status: {
      schema: oneOf([...organizationStatuses]),
      read: (one) => one.status,
      fresh: "active",
      member: null,
      sets: (value) => ({ verb: statusVerbs[value as Organization["status"]], input: {} }),
    },
  },
};

/** A team or a key with its limits; null: the limits were not read. */
export type WithLimits<Thing> = Thing & { limits: LimitsNow | null };

export const teamKind: RemovableKind<WithLimits<Team>> = {
  word: "team",
  creation: { verb: "createTeam", input: ({ organization, name }) => ({ organization, name }) },
  subject: (_, team) => (team ? { team: team.id } : {}),
  removes: "removeTeam",
  version: ({ version }) => version,
  fields: {
    limits: limitsField("updateTeamLimits", true, (team) => team.limits),
  },
};

export const keyKind: RemovableKind<WithLimits<Key>> = {
  word: "key",
  creation: { verb: "createKey", input: ({ organization, name }) => ({ organization, name, own_name: true }) },
  subject: (_, key) => (key ? { id: key.id } : {}),
  removes: "revokeKey",
  version: ({ version }) => version,
  fields: {
    scopes: setBy("updateKey", "scopes", { compares: "set", read: (key) => key.scopes, fresh: scopes }),
    models: setBy("updateKey", "models", { compares: "set", read: (key) => key.models, fresh: null }),
    expires_at: setBy("updateKey", "expires_at", { read: (key) => key.expiresAt?.toISOString() ?? null, fresh: null }),
    owner: setBy("updateKey", "owner", { read: (key) => key.owner, fresh: null }),
    labels: setBy("updateKey", "labels", { compares: "map", read: (key) => key.labels, fresh: {} }),
    allow_from: setBy("updateKey", "allow_from", {
      compares: "set",
      read: (key) => key.allowFrom,
      fresh: null,
      normal: (value) => value && parse.networks(value as string[]),
    }),
    team: setBy("updateKey", "team", { read: (key) => key.team?.name ?? null, fresh: null }),
    limits: limitsField("updateKeyLimits", false, (key) => key.limits),
  },
};
