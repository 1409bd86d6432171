/** What an administrator sees and mends of usage: windows, the book against itself, compensating entries, single requests. */
import type { Organization, UsageEntry } from "../store/directory.ts";
import { idOf, uuidOf } from "../store/ids.ts";
import {
  type LedgerDifference,
  type Receipt,
  type UsageReading,
  unitsMax,
  type WindowKind,
  windowKinds,
} from "../store/ledger.ts";
import { noLimits, type Plan } from "../store/plan.ts";
import type { RefusedRequest } from "../store/refused.ts";
import { type Acting, refuse } from "./acting.ts";
import * as wish from "./wish.ts";

export interface UsageVerbs {
  /** What an organization has in use now, and of which plan. */
  readUsage(input: { organization: string }): Promise<OrganizationUsage>;
  /** Every total of a year beside the sum that it must equal, where they differ: none when the book is right. */
  checkUsage(input: Record<string, never>): Promise<OwnedDifference[]>;
  /**
   * A compensating entry for a window of now: `session`, `week`, `month`, `extra`, or `all` for the first three. Units are
   * added, or with a minus taken away, down to nothing. Where no session is open there is none to adjust.
   */
  adjustUsage(input: { organization: string; window: string; units: number; reason: string }): Promise<UsageAdjustment>;
  /** One inference request of whatever organization, refused ones too. */
  findRequest(input: { id: string }): Promise<FoundRequest>;
}

export interface OrganizationUsage {
  organization: Organization;
  /** Null: it has none, or one that the catalog in force lacks. */
  plan: Plan | null;
  usage: UsageReading;
}
export interface OwnedDifference {
  /** Null: there is none by this id. */
  organization: Pick<Organization, "slug"> | null;
  difference: LedgerDifference;
}
export interface UsageAdjustment {
  organization: Organization;
  reason: string;
  entries: UsageEntry[];
}
/** One of the two; the other is null. */
export interface FoundRequest {
  organization: Organization | null;
  receipt: Receipt | null;
  refused: RefusedRequest | null;
}

export function usageVerbs(acting: Acting): UsageVerbs {
  const { administration, actor, catalog, ledger, newUuid, refused } = acting;
  return {
    async readUsage(input) {
      const organization = await acting.organizationOf(input.organization);
      const plan = organization.plan === null ? undefined : (await catalog()).plans.get(organization.plan);
      return { organization, plan: plan ?? null, usage: await ledger.reading(organization.id, plan ?? noLimits) };
    },
    async checkUsage() {
      const differences = await ledger.check();
      if (differences.length === 0) return [];
      const known = new Map((await administration.listOrganizations()).map((one) => [one.id, { slug: one.slug }]));
      return differences.map((difference) => ({
        organization: known.get(difference.organizationId) ?? null,
        difference,
      }));
    },
    async adjustUsage(input) {
      const kinds = windowsOf(input.window);
      const units = wish.signedCount(input.units, unitsMax, "The units");
      const reason = wish.name(input.reason, "The reason");
      const organization = await acting.organizationOf(input.organization);
      const entries = await administration.adjustUsage({
        organizationId: organization.id,
        entries: kinds.map((kind) => ({ entryId: idOf(newUuid(), "req_"), kind })),
        units,
        reason,
        actor,
      });
      if (entries.every(({ added }) => added === null)) {
        refuse(`No session of ${organization.slug} is open, so there is nothing to adjust: the next one begins at 0.`);
      }
      return { organization, reason, entries };
    },
    async findRequest(input) {
      const id = wish.text(input.id, "a request's id");
      if (uuidOf(id, "req_") === null) refuse(`'${wish.shown(id)}' is not a request's id: those begin with 'req_'.`);
      const receipt = await ledger.receiptOfAny(id);
      const found = { receipt, refused: receipt ? null : await refused.find(id) };
      const owner = found.receipt?.organizationId ?? found.refused?.organizationId;
      if (owner === undefined) {
        refuse(
          `There is no request ${id}. Records are kept for 13 months, refused requests for 30 days; requests without a valid key leave none.`,
        );
      }
      return { ...found, organization: await administration.findOrganization(owner) };
    },
  };
}

function windowsOf(value: unknown): readonly (WindowKind | "extra")[] {
  const word = wish.text(value, "a window");
  if (word === "all") return windowKinds;
  const kind = [...windowKinds, "extra" as const].find((one) => one === word);
  return kind
    ? [kind]
    : refuse(`There is no window '${wish.shown(word)}'. There are: session, week, month, extra, all.`);
}
