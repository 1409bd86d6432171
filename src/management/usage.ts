/** What an administrator does with usage: read windows, check totals, add compensating entries, look up requests. */
import type { Organization, UsageEntry } from "../store/directory.ts";
import { idOf, uuidOf } from "../store/ids.ts";
import {
  type LedgerDifference,
  type Receipt,
  type Sealed,
  type UsageReading,
  units_max,
  type WindowKind,
  windowKinds,
} from "../store/ledger.ts";
import type { Lost } from "../store/lost.ts";
import { noLimits, type Plan } from "../store/plan.ts";
import type { RefusedRequest } from "../store/refused.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

export interface UsageVerbs {
  /** The current usage of an organization, and its plan. */
  readUsage(input: { organization: string }): Promise<OrganizationUsage>;
  /** The totals of the past year that differ from the sum of their records. `full`: nothing is taken on trust. */
  checkUsage(input: { full: boolean }): Promise<UsageCheck>;
  /**
   * Adds a compensating entry to a current window: `session`, `week`, `month`, `extra`, or `all` for the first three.
   * Negative units are subtracted, down to 0. Without an open session there is no session to adjust.
   */
  adjustUsage(input: { organization: string; window: string; units: number; reason: string }): Promise<UsageAdjustment>;
  /** One inference request of any organization, refused or not. */
  findRequest(input: { id: string }): Promise<FoundRequest>;
}

export interface OrganizationUsage {
  organization: Pick<Organization, "id" | "slug" | "plan">;
  /** Null: it has no plan, or one that the current catalog lacks. */
  plan: Pick<Plan, "concurrentRequests"> | null;
  usage: UsageReading;
}
export interface OwnedDifference {
  /** Null: no organization has this id. */
  organization: Pick<Organization, "slug"> | null;
  difference: LedgerDifference;
}
export interface UsageCheck {
  /** Empty: the ledger balances. */
  differences: OwnedDifference[];
  /** What was taken on trust. */
  trusted: Sealed;
  /** What was confirmed and then not there any more. The totals are right without it. */
  lost: Lost;
}
export interface UsageAdjustment {
  organization: Pick<Organization, "id" | "slug">;
  reason: string;
  entries: UsageEntry[];
}
/** Either `receipt` or `refused`; the other is null. */
export interface FoundRequest {
  organization: Pick<Organization, "slug"> | null;
  receipt: Receipt | null;
  refused: RefusedRequest | null;
}

const nothing: Sealed = { windows: 0, records: 0, days: 0, dayRecords: 0 };

export function usageVerbs(context: ManagementContext): UsageVerbs {
  const { administration, actor, catalog, ledger, newUuid, organizationOf, refused } = context;
  return {
    async readUsage(input) {
      const organization = await organizationOf(input.organization);
      const plan = organization.plan === null ? undefined : (await catalog()).plans.get(organization.plan);
      return { organization, plan: plan ?? null, usage: await ledger.reading(organization.id, plan ?? noLimits) };
    },
    async checkUsage({ full }) {
      const differences = await ledger.check(full);
      const trusted = full ? nothing : await ledger.sealed();
      const lost = await ledger.lost();
      if (differences.length === 0) return { differences: [], trusted, lost };
      const known = new Map((await administration.listOrganizations()).map((one) => [one.id, { slug: one.slug }]));
      const owned = differences.map((difference) => ({
        organization: known.get(difference.organizationId ?? "") ?? null,
        difference,
      }));
      return { differences: owned, trusted, lost };
    },
    async adjustUsage(input) {
      const kinds = windowsOf(input.window);
      const units = parse.signedCount(input.units, units_max, "The units");
      const reason = parse.name(input.reason, "The reason");
      const organization = await organizationOf(input.organization);
      const entries = await administration.adjustUsage({
        organizationId: organization.id,
        entries: kinds.map((kind) => ({ entryId: idOf(newUuid(), "req_"), kind })),
        units,
        reason,
        actor,
      });
      if (entries.every(({ added }) => added === null)) {
        fail(
          `No session of ${organization.slug} is open, so there is nothing to adjust. The next session starts at 0.`,
          "state",
        );
      }
      return { organization, reason, entries };
    },
    async findRequest(input) {
      const id = parse.text(input.id, "a request's ID");
      if (uuidOf(id, "req_") === null)
        fail(`'${parse.excerpt(id)}' is not a request ID. Request IDs begin with 'req_'.`);
      const receipt = await ledger.receiptOfAny(id);
      const found = { receipt, refused: receipt ? null : await refused.find(id) };
      const owner = found.receipt?.organizationId ?? found.refused?.organizationId;
      if (owner === undefined || !context.isInSight(owner)) {
        fail(
          `There is no request ${id}. Records are kept for 13 months, and those of refused requests for 30 days. Requests without a valid key are not recorded.`,
          "not_found",
        );
      }
      return { ...found, organization: await administration.findOrganization(owner) };
    },
  };
}

function windowsOf(value: unknown): readonly (WindowKind | "extra")[] {
  const word = parse.text(value, "a window");
  if (word === "all") return windowKinds;
  const kind = [...windowKinds, "extra" as const].find((one) => one === word);
  return kind
    ? [kind]
    : fail(`There is no window '${parse.excerpt(word)}'. The windows are: session, week, month, extra, all.`);
}
