/** Usage of organizations: their windows, the check of the ledger, and entries that correct usage. */
import Type from "typebox";
import { grouped } from "../../core/inference/amounts.ts";
import type { Value } from "../../core/schema/codec.ts";
import { idOf } from "../../core/store/ids.ts";
import { type LedgerDifference, type Sealed, units_max, windowKinds } from "../../core/store/ledger.ts";
import { noLimits } from "../../core/store/plan.ts";
import { flag, required } from "./command.ts";
import { fail } from "./error.ts";
import {
  admins,
  count,
  examples,
  id,
  instant,
  limit,
  name,
  nullable,
  oneOf,
  oneOrganization,
  readers,
  units,
} from "./shapes.ts";
import { exampleWindow, Window, windowShown } from "./standing.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Usage");

export const OrganizationUsage = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    plan: nullable(Type.String()),
    at: instant("When this was read."),
    session: Window,
    week: Window,
    month: Window,
    extra_usage: Type.Object({ enabled: Type.Boolean(), cap_units: nullable(units()), used: units(), held: units() }),
    running_requests: count(),
    concurrent_requests: limit(),
  },
  { $id: "OrganizationUsage" },
);
export type OrganizationUsage = Value<typeof OrganizationUsage>;

export const Difference = Type.Object({
  organization_id: nullable(Type.String()),
  organization: nullable(Type.String()),
  subject_id: nullable(Type.String({ description: "UUID of its key or team; null: its own total." })),
  window: oneOf([...windowKinds, "extra", "running", "hour", "day", "total", "pass", "chain"]),
  starts_at: nullable(instant("When the window began, or the entry of the audit log was written.")),
  audit_entry: nullable(
    Type.Integer({
      minimum: 1,
      description:
        "Of `pass`: the entry of the audit log that says otherwise. Of `chain`: one at or behind which it is broken.",
    }),
  ),
  used: Type.Integer(),
  recorded: Type.Integer(),
  held: Type.Integer(),
  holding: Type.Integer(),
});
export type Difference = Value<typeof Difference>;
const UsageCheck = Type.Object(
  {
    differences: Type.Array(Difference, { description: "Empty: every total equals the sum of its records." }),
    trusted: Type.Object(
      { windows: count(), records: count(), days: count(), day_records: count() },
      { description: "What was not read again: sealed windows and days, and their records." },
    ),
    lost: Type.Object(
      {
        receipts: count(),
        units: units(),
        noticed_at: nullable(instant("When the last of them was noticed.")),
        moved_at: nullable(instant("When another server was met last.")),
      },
      { description: "Settlements that the database had confirmed and no longer had." },
    ),
  },
  { $id: "UsageCheck" },
);

const UsageAdjustment = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    reason: Type.String(),
    entries: Type.Array(
      Type.Object({
        id: nullable(id("req")),
        window: oneOf([...windowKinds, "extra"]),
        units: nullable(Type.Integer({ description: "What was added. Null: no session was open." })),
      }),
    ),
  },
  { $id: "UsageAdjustment" },
);

const nothing: Sealed = { windows: 0, records: 0, days: 0, dayRecords: 0 };

export const usageVerbs = [
  verb({
    name: "readUsage",
    route: "GET /organizations/{organization}/usage",
    summary: "Read the usage of an organization",
    description: "Its windows as they are now, in micro-units.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(oneOrganization),
    answers: OrganizationUsage,
    example: {
      takes: { organization: "acme" },
      answer: {
        organizationId: examples.organization,
        organization: "acme",
        plan: "pro",
        at: examples.at,
        session: exampleWindow,
        week: exampleWindow,
        month: exampleWindow,
        extraUsage: { enabled: false, capUnits: null, used: 0, held: 0 },
        runningRequests: 3,
        concurrentRequests: 20,
      },
    },
    async act({ catalog, ledger, organizationOf }, input) {
      const { id, slug, plan } = await organizationOf(input.organization);
      const inForce = plan === null ? undefined : (await catalog()).plans.get(plan);
      const { windows, extra, running, concurrentRequests, at } = await ledger.reading(id, inForce ?? noLimits);
      return {
        organizationId: id,
        organization: slug,
        plan,
        at,
        session: windowShown(windows.session),
        week: windowShown(windows.week),
        month: windowShown(windows.month),
        extraUsage: extra,
        runningRequests: running,
        concurrentRequests,
      };
    },
  }),
  verb({
    name: "adjustUsage",
    route: "POST /organizations/{organization}/usage/adjustments",
    summary: "Add units to the current usage, or subtract them",
    description: "Each call adds once more.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({
      ...oneOrganization,
      window: oneOf(["session", "week", "month", "extra", "all"], { description: "`all`: session, week and month." }),
      units: Type.Union(
        [Type.Integer({ minimum: -units_max, maximum: -1 }), Type.Integer({ minimum: 1, maximum: units_max })],
        {
          description: "Below 0: to subtract, down to 0.",
          "x-must-be": `a whole number other than 0, from -${units_max} to ${units_max}`,
        },
      ),
      reason: name("For the audit log."),
    }),
    answers: UsageAdjustment,
    example: {
      takes: { organization: "acme", window: "session", units: -250_000, reason: "outage of 3 May" },
      answer: {
        organizationId: examples.organization,
        organization: "acme",
        reason: "outage of 3 May",
        entries: [{ id: examples.request, window: "session", units: -125_000 }],
      },
    },
    command: {
      words: "usage adjust",
      description: "add units to the current usage of an organization, or subtract them",
      takes: {
        organization: flag("<org>", "slug or ID of the organization"),
        window: {
          ...required("--window <window>", "window to adjust; all means session, week, and month"),
          hasChoices: true,
        },
        units: required("--units <±n>", "units to add, or to subtract, such as -250000; usage stops at 0"),
        reason: required("--reason <text>", "reason for the audit log"),
      },
      says: ({ organization, entries }) =>
        entries
          .map(({ window, units }) =>
            units === null
              ? `${organization}, ${window}: no open session.\n`
              : `${organization}, ${window}: ${units > 0 ? "+" : ""}${grouped(units)} units.\n`,
          )
          .join(""),
      help: `
There is no default window, because windows differ: an entry for month or extra
is part of reports and their costs, and one for session or week only changes
what a limit leaves.

Examples:
  $ sluice usage adjust acme --window all --units -250000 --reason "outage of 3 May"
  $ sluice usage adjust acme --window month --units 1000000 --reason "offline batch"`,
    },
    async act({ administration, actor, newUuid, organizationOf }, { organization: given, window, units, reason }) {
      const { id, slug } = await organizationOf(given);
      const kinds = window === "all" ? windowKinds : ([window] as const);
      const entries = await administration.adjustUsage({
        organizationId: id,
        entries: kinds.map((kind) => ({ entryId: idOf(newUuid(), "req_"), kind })),
        units,
        reason,
        actor,
      });
      if (entries.every(({ added }) => added === null)) {
        fail(
          `No session of ${slug} is open, so there is nothing to adjust. The next session starts at 0.`,
          "wrong_state",
        );
      }
      return {
        organizationId: id,
        organization: slug,
        reason,
        entries: entries.map(({ entryId, kind, added }) => ({
          id: added === null ? null : entryId,
          window: kind,
          units: added,
        })),
      };
    },
  }),
  verb({
    name: "checkUsage",
    route: "POST /usage/check",
    summary: "Compare every total with its records",
    description: "Of the past year. It can take minutes on much data, and longer with `full`.",
    roles: ["admin", "viewer"],
    kind: "act",
    faults: ["wrong_state"],
    takes: Type.Object({ full: Type.Boolean({ description: "Read the records of sealed windows too." }) }),
    answers: UsageCheck,
    example: {
      takes: { full: false },
      answer: {
        differences: [],
        trusted: { windows: 12, records: 3400, days: 2, dayRecords: 900 },
        lost: { receipts: 0, units: 0, noticedAt: null, movedAt: null },
      },
    },
    async act({ administration, ledger }, { full }) {
      const differences = await ledger.check(full);
      const trusted = full ? nothing : await ledger.sealed();
      const lost = await ledger.lost();
      if (differences.length === 0) return { differences: [], trusted, lost };
      const slugs = new Map((await administration.listOrganizations()).map(({ id, slug }) => [id, slug]));
      const listed = differences.map((one) => differenceShown(one, slugs.get(one.organizationId ?? "") ?? null));
      return { differences: listed, trusted, lost };
    },
  }),
] as const;

function differenceShown({ kind, entry, ...rest }: LedgerDifference, organization: string | null): Difference {
  return { ...rest, organization, window: kind, auditEntry: entry ?? null };
}
