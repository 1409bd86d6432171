/** What an administrator changes of an organization: its names, state, plan, and what it asks of its keys. */
import type { Changed, Organization, OrganizationStatus, Policies } from "../store/directory.ts";
import { units_max } from "../store/ledger.ts";
import { isClosed, type ManagementContext, noOrganization } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { lastChange, stale, type Versioned, versionIn } from "./version.ts";

export interface OrganizationChangeVerbs {
  /** With a version, here and below: only if the organization has it still. One that is closed is never changed. */
  suspendOrganization(input: Named & Versioned): Promise<Organization>;
  resumeOrganization(input: Named & Versioned): Promise<Organization>;
  /** What is left out stays. Everything goes on by its ID; the old slug is never another's. */
  renameOrganization(input: Named & { slug?: string | null; name?: string | null } & Versioned): Promise<Organization>;
  /** For good: its keys are revoked, what runs ends, and nothing can be made in it. Repeating it changes nothing. */
  closeOrganization(input: Named & Versioned): Promise<Organization>;
  /**
   * What is left out stays, and null lifts a limit of days. They count at once for the keys that there are. Once it keeps
   * no content, what was stored is deleted before this answers.
   */
  updatePolicies(
    input: Named & {
      keyLifetimeMaxDays?: number | null;
      keyUnusedMaxDays?: number | null;
      keepsContent?: boolean | null;
    } & Versioned,
  ): Promise<Organization>;
  /** The limits apply from the next request on; usage and boundaries stay. Null: no plan, so inference is refused. */
  setPlan(input: Named & { plan: string | null } & Versioned): Promise<Organization>;
  /** ISO 8601 with a zone, or a date (UTC). Weeks and months count from it once the current month has ended. */
  setAnchor(input: Named & { anchor: string } & Versioned): Promise<Organization>;
  /** With a cap in units a billing month, extra usage is on; without one it is off. */
  setExtraUsage(input: Named & { capUnits: number | null } & Versioned): Promise<Organization>;
}

/** `organization` is a slug or an id, in every verb. */
interface Named {
  organization: string;
}

/** Ten years: what is longer means never, and that is null. */
export const policyDays_max = 3650;

export function organizationChangeVerbs(context: ManagementContext): OrganizationChangeVerbs {
  const { administration, actor, announce, organizationOf } = context;

  type Write = (id: string, version: number | null) => Promise<Changed | "no_plan" | "slug_taken">;
  async function update({ id, slug }: Organization, input: Versioned, write: Write): Promise<Organization> {
    const version = versionIn(input);
    const updated = await write(id, version);
    if (updated === "no_plan") return removedPlan();
    if (updated === "slug_taken") return takenSlug(input);
    if (updated === "closed") return isClosed(slug);
    if (updated === null) return noOrganization(slug);
    if (!("stale" in updated)) {
      await announce(id);
      return updated;
    }
    const current = updated.stale;
    const last = await lastChange(administration, current);
    return stale(`Organization '${current.slug}'`, { now: current.version, read: version!, current, last });
  }
  async function setStatus(
    input: Named & Versioned,
    status: Exclude<OrganizationStatus, "closed">,
  ): Promise<Organization> {
    const organization = await organizationOf(input.organization);
    if (organization.status === status && parse.isAbsent(input.version)) return organization;
    return update(organization, input, (id, version) =>
      administration.setOrganizationStatus(id, status, actor, version),
    );
  }
  const takenSlug = ({ slug }: { slug?: unknown } & Versioned) =>
    fail(`The slug '${parse.excerpt(String(slug))}' is or was another organization's. Choose another one.`, "taken");

  return {
    suspendOrganization: (input) => setStatus(input, "suspended"),
    resumeOrganization: (input) => setStatus(input, "active"),
    async renameOrganization(input) {
      const names = {
        ...(parse.isAbsent(input.slug) ? {} : { slug: parse.slug(input.slug) }),
        ...(parse.isAbsent(input.name) ? {} : { name: parse.name(input.name, "The organization's name") }),
      };
      if (Object.keys(names).length === 0) fail("Specify the organization's new slug or name.");
      const organization = await organizationOf(input.organization);
      return update(organization, input, (id, version) => administration.renameOrganization(id, names, actor, version));
    },
    async closeOrganization(input) {
      const organization = await organizationOf(input.organization);
      const isRepeat = organization.status === "closed" && parse.isAbsent(input.version);
      const closed = isRepeat
        ? organization
        : await update(organization, input, (id, version) => administration.closeOrganization(id, actor, version));
      await administration.purgeContent(closed.id);
      return closed;
    },
    async updatePolicies(input) {
      const policies = policiesIn(input);
      const organization = await organizationOf(input.organization);
      const updated = await update(organization, input, (id, version) =>
        administration.setPolicies(id, policies, actor, version),
      );
      if (!updated.keepsContent) await administration.purgeContent(updated.id);
      return updated;
    },
    async setPlan(input) {
      const plan = parse.isAbsent(input.plan) ? null : await context.knownPlan(input.plan);
      const organization = await organizationOf(input.organization);
      return update(organization, input, (id, version) => administration.setOrganizationPlan(id, plan, actor, version));
    },
    async setAnchor(input) {
      const anchorAt = parse.anchor(input.anchor);
      const organization = await organizationOf(input.organization);
      return update(organization, input, (id, version) =>
        administration.setOrganizationAnchor(id, anchorAt, actor, version),
      );
    },
    async setExtraUsage(input) {
      const { capUnits } = input;
      const extra = parse.isAbsent(capUnits)
        ? ({ enabled: false } as const)
        : ({ enabled: true, capUnits: parse.count(capUnits, units_max, "The cap") } as const);
      const organization = await organizationOf(input.organization);
      return update(organization, input, (id, version) => administration.setExtraUsage(id, extra, actor, version));
    },
  };
}

type PolicyInput = Partial<Record<keyof Policies, unknown>>;

function policiesIn({ keyLifetimeMaxDays, keyUnusedMaxDays, keepsContent }: PolicyInput): Partial<Policies> {
  const days = (value: unknown, what: string) => (value === null ? null : parse.count(value, policyDays_max, what));
  const policies: Partial<Policies> = {};
  if (keyLifetimeMaxDays !== undefined)
    policies.keyLifetimeMaxDays = days(keyLifetimeMaxDays, "The longest lifetime of keys, in days,");
  if (keyUnusedMaxDays !== undefined)
    policies.keyUnusedMaxDays = days(keyUnusedMaxDays, "The days after which an unused key ends");
  if (!parse.isAbsent(keepsContent))
    policies.keepsContent =
      typeof keepsContent === "boolean" ? keepsContent : fail("Specify true or false: whether content is kept.");
  if (Object.keys(policies).length === 0) fail("Specify which policy to change.");
  return policies;
}

export function removedPlan(): never {
  return fail("This plan was removed meanwhile. To list all plans, run: sluice plan list");
}
