/** Usage of organizations: their usage windows, the check of the ledger, and entries that correct usage. */
import Type from "typebox";
import { type Currency, inWords, type Money, moneyOf, nanosOf } from "../../core/inference/money.ts";
import { count, Money as MoneyShape, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { idOf } from "../../core/store/ids.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import { noLimits } from "../../core/store/plan.ts";
import type { LedgerDifference } from "../../features/upkeep/store/books.ts";
import type { UsageEntry } from "../store/administration.ts";
import type { Sealed } from "../store/ledger.ts";
import { id, instant } from "../store/shapes.ts";
import { flag, required, tablePiece } from "./command.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { dollars, nanosGiven, signedMoney } from "./money.ts";
import { organizationFlag } from "./organizations.ts";
import { admins, examples, name, oneOrganization, readers } from "./shapes.ts";
import { exampleWindow, windowShown } from "./standing.ts";
import { Difference, OrganizationUsage } from "./usage-shape.ts";
import { checkHelp, differenceColumns, onDifferences, onLost, onTrust, usageSaid } from "./usage-words.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Usage");

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
        charged: MoneyShape,
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
        amount: Type.Union([MoneyShape, Type.Null()], { description: "What was added. Null: no session was open." }),
      }),
    ),
  },
  { $id: "UsageAdjustment" },
);

/** The entries with these ids that an earlier adjustment made, from the audit log; a repeated request returns them. */
function entriesBefore(
  { listAudit }: Pick<ManagementContext["administration"], "listAudit">,
  ids: readonly string[],
  kinds: readonly UsageEntry["kind"][],
): Promise<UsageEntry[]> {
  return Promise.all(
    kinds.map(async (kind, index) => {
      const entryId = ids[index]!;
      const [entry] = await listAudit({ subject: entryId, action: "usage.adjust", limit: 1 });
      return { entryId, kind, added: entry ? Number(nanosOf({ amount: String(entry.details.added) })) : null };
    }),
  );
}

const nothing: Sealed = { windows: 0, records: 0, days: 0, dayRecords: 0 };

export const usageVerbs = [
  verb({
    name: "readUsage",
    route: "GET /organizations/{organization}/usage",
    summary: "Read the usage of an organization",
    description: "Its windows as they are now.",
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
        extraUsage: { enabled: false, cap: null, used: dollars(0), held: dollars(0) },
        runningRequests: 3,
        concurrentRequests: 20,
      },
    },
    command: {
      words: "usage show",
      description: "show how much of its limits an organization has used",
      takes: { organization: organizationFlag },
      says: usageSaid,
    },
    async act({ catalog, ledger, organizationOf }, input) {
      const { id, slug, plan } = await organizationOf(input.organization);
      const { plans, billing } = await catalog();
      const { currency } = billing;
      const inForce = plan === null ? undefined : plans.get(plan);
      const { windows, extra, running, concurrentRequests, at } = await ledger.reading(id, inForce ?? noLimits);
      return {
        organizationId: id,
        organization: slug,
        plan,
        at,
        session: windowShown(windows.session, currency),
        week: windowShown(windows.week, currency),
        month: windowShown(windows.month, currency),
        extraUsage: {
          enabled: extra.enabled,
          cap: extra.capNanos === null ? null : moneyOf(extra.capNanos, currency),
          used: moneyOf(extra.used, currency),
          held: moneyOf(extra.held, currency),
        },
        runningRequests: running,
        concurrentRequests,
      };
    },
  }),
  verb({
    name: "adjustUsage",
    route: "POST /organizations/{organization}/usage/adjustments",
    summary: "Add an amount to the current usage, or subtract it",
    description: "Each call adds once more, unless it has the `idempotency-key` of one before.",
    roles: admins,
    kind: "creation",
    faults: ["resource_not_found", "wrong_state", "idempotency_key_reused"],
    takes: Type.Object({
      ...oneOrganization,
      window: oneOf(["session", "week", "month", "extra", "all"], { description: "`all`: session, week and month." }),
      amount: signedMoney("Below 0: to subtract, down to 0."),
      reason: name("For the audit log."),
    }),
    answers: UsageAdjustment,
    example: {
      takes: { organization: "acme", window: "session", amount: "-0.25", reason: "outage of 3 May" },
      answer: {
        organizationId: examples.organization,
        organization: "acme",
        reason: "outage of 3 May",
        entries: [{ id: examples.request, window: "session", amount: dollars(-125_000_000) }],
      },
    },
    command: {
      words: "usage adjust",
      description: "add an amount to the current usage of an organization, or subtract it",
      takes: {
        organization: flag("<org>", "slug or ID of the organization"),
        window: {
          ...required("--window <window>", "window to adjust; all means session, week, and month"),
          hasChoices: true,
        },
        amount: required("--amount <±money>", "amount to add, or to subtract, such as -0.25; usage stops at 0"),
        reason: required("--reason <text>", "reason for the audit log"),
      },
      says: ({ organization, entries }) =>
        entries
          .map(({ window, amount }) =>
            amount === null
              ? `${organization}, ${window}: no open session.\n`
              : `${organization}, ${window}: ${nanosOf(amount) > 0n ? "+" : ""}${inWords(amount)}.\n`,
          )
          .join(""),
      help: `
There is no default window, because windows differ: an entry for month or extra
is part of reports and their costs, and one for session or week only changes
what a limit leaves.

Examples:
  $ sluice usage adjust acme --window all --amount -0.25 --reason "outage of 3 May"
  $ sluice usage adjust acme --window month --amount 1 --reason "offline batch"`,
    },
    async act(context, input) {
      const { organization: given, window, amount, reason } = input;
      const { administration, actor, newUuid, organizationOf, repeatOf } = context;
      const { id, slug } = await organizationOf(given);
      const currency = await context.currency();
      const nanos = nanosGiven(amount, currency, "amount");
      if (nanos === 0) fail("'amount' must be other than 0.");
      const kinds = window === "all" ? windowKinds : ([window] as const);
      const made = await administration.adjustUsage({
        organizationId: id,
        entries: kinds.map((kind) => ({ entryId: idOf(newUuid(), "req_"), kind })),
        nanos,
        reason,
        actor,
        repeat: repeatOf("adjustUsage", input),
      });
      if (made === "reused") return reusedKey();
      const entries = "repeated" in made ? await entriesBefore(administration, made.repeated.split(" "), kinds) : made;
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
          amount: added === null ? null : moneyOf(added, currency),
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
        lost: { receipts: 0, charged: dollars(0), noticedAt: null, movedAt: null },
      },
    },
    command: {
      words: "usage check",
      description: "compare every total of the past year with the sum of its records",
      takes: { full: { ...flag("--full", "read the records of sealed windows too"), fallback: false } },
      // Scripts read the list of differences on stdout. Lost usage is not a difference between records, so it is
      // reported on stderr.
      prints: "differences",
      notes: ({ lost }) => onLost(lost),
      says: ({ differences, trusted }) =>
        differences.length > 0
          ? { pieces: [tablePiece(differenceColumns, differences)] }
          : `Every total equals the sum of its records.\n${onTrust(trusted)}`,
      fails: ({ differences }) => (differences.length > 0 ? onDifferences(differences) : null),
      help: checkHelp,
    },
    async act({ administration, currency, ledger }, { full }) {
      const own = await currency();
      const differences = await ledger.check(full);
      const trusted = full ? nothing : await ledger.sealed();
      const { nanos, ...noticed } = await ledger.lost();
      const lost = { ...noticed, charged: moneyOf(nanos, own) };
      if (differences.length === 0) return { differences: [], trusted, lost };
      const slugs = new Map((await administration.listOrganizations()).map(({ id, slug }) => [id, slug]));
      const listed = differences.map((one) => ({
        ...differenceShown(one, own),
        organization: slugs.get(one.organizationId ?? "") ?? null,
      }));
      return { differences: listed, trusted, lost };
    },
  }),
] as const;

const ofMoney = new Set<LedgerDifference["kind"]>([...windowKinds, "extra"]);
const ofMoneyAndCounts = new Set<LedgerDifference["kind"]>(["hour", "day", "total", "pass"]);

/**
 * The form in which a difference is shown:
 * - windows and extra usage: as money
 * - roll-ups, and the records that the audit log attests (`pass`): as money and as counts
 * - all others: as counts
 */
function differenceShown(
  { kind, entry, used, recorded, held, holding, ...rest }: LedgerDifference,
  currency: Currency,
): Omit<Difference, "organization"> {
  const money = (nanos: number): Money => moneyOf(nanos, currency);
  const isWindow = ofMoney.has(kind);
  const isMoney = isWindow || ofMoneyAndCounts.has(kind);
  return {
    ...rest,
    window: kind,
    auditEntry: entry ?? null,
    used: isMoney ? money(used) : used,
    recorded: isMoney ? money(recorded) : recorded,
    held: isWindow ? money(held) : held,
    holding: isWindow ? money(holding) : holding,
  };
}
