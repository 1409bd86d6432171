/** What an administrator does with organizations: who they are, whether they are served, and on what plan. */
import type { Organization } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { unitsMax } from "../store/ledger.ts";
import { type Acting, noOrganization, refuse } from "./acting.ts";
import * as wish from "./wish.ts";

export interface OrganizationVerbs {
  /** Without a plan: `starter`. */
  createOrganization(input: { slug: string; name?: string | null; plan?: string | null }): Promise<Organization>;
  listOrganizations(): Promise<Organization[]>;
  /** By slug or id, as everywhere. */
  findOrganization(input: { organization: string }): Promise<Organization>;
  suspendOrganization(input: { organization: string }): Promise<Organization>;
  resumeOrganization(input: { organization: string }): Promise<Organization>;
  /** Its limits count for the next request; use and boundaries stay. Null: none, and inference is refused. */
  setPlan(input: { organization: string; plan: string | null }): Promise<Organization>;
  /** ISO 8601 with a zone, or a date (UTC). Weeks and months are counted from it when the running month has ended. */
  setAnchor(input: { organization: string; anchor: string }): Promise<Organization>;
  /** With a cap it is on, for so many units a billing month; without one it is off. */
  setExtraUsage(input: { organization: string; capUnits: number | null }): Promise<Organization>;
}

/** What an organization gets when nobody names a plan. */
export const plan_default = "starter";

export function organizationVerbs(acting: Acting): OrganizationVerbs {
  const { administration, actor, catalog, newUuid } = acting;

  type Work = (organization: Organization) => Promise<Organization | null>;
  const change = async (slugOrId: unknown, work: Work) => changed(await acting.organizationOf(slugOrId), work);
  async function changed(organization: Organization, work: Work): Promise<Organization> {
    const after = await work(organization);
    await acting.announce(organization.id);
    return after ?? noOrganization(organization.slug);
  }
  async function setStatus(slugOrId: unknown, status: Organization["status"]): Promise<Organization> {
    const organization = await acting.organizationOf(slugOrId);
    if (organization.status === status) return organization;
    return changed(organization, ({ id }) => administration.setOrganizationStatus(id, status, actor));
  }
  const knownPlan = async (name: unknown) => wish.plan(name, [...(await catalog()).plans.keys()]);

  return {
    async createOrganization(input) {
      const slug = wish.slug(input.slug);
      const made = await administration.createOrganization({
        id: idOf(newUuid(), "org_"),
        slug,
        name: wish.isAbsent(input.name) ? slug : wish.name(input.name, "The organization's name"),
        plan: await knownPlan(input.plan ?? plan_default),
        actor,
      });
      if (made === "slug_taken") refuse(`An organization '${slug}' exists already. Choose another slug.`);
      return made;
    },
    listOrganizations: () => administration.listOrganizations(),
    findOrganization: (input) => acting.organizationOf(input.organization),
    suspendOrganization: (input) => setStatus(input.organization, "suspended"),
    resumeOrganization: (input) => setStatus(input.organization, "active"),
    async setPlan(input) {
      const plan = wish.isAbsent(input.plan) ? null : await knownPlan(input.plan);
      return change(input.organization, ({ id }) => administration.setOrganizationPlan(id, plan, actor));
    },
    async setAnchor(input) {
      const anchorAt = wish.anchor(input.anchor);
      return change(input.organization, ({ id }) => administration.setOrganizationAnchor(id, anchorAt, actor));
    },
    async setExtraUsage(input) {
      const { capUnits } = input;
      const extra = wish.isAbsent(capUnits)
        ? ({ enabled: false } as const)
        : ({ enabled: true, capUnits: wish.count(capUnits, unitsMax, "The cap") } as const);
      return change(input.organization, ({ id }) => administration.setExtraUsage(id, extra, actor));
    },
  };
}
