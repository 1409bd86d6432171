/** What an administrator does with organizations: create, find, suspend, and change what they may use. */
import type { Organization } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { units_max } from "../store/ledger.ts";
import { type ManagementContext, noOrganization } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

export interface OrganizationVerbs {
  /** Without a plan: `starter`. */
  createOrganization(input: { slug: string; name?: string | null; plan?: string | null }): Promise<Organization>;
  listOrganizations(): Promise<Organization[]>;
  /** `organization` is a slug or an id, here and in every verb. */
  findOrganization(input: { organization: string }): Promise<Organization>;
  suspendOrganization(input: { organization: string }): Promise<Organization>;
  resumeOrganization(input: { organization: string }): Promise<Organization>;
  /** The limits apply from the next request on; usage and boundaries stay. Null: no plan, so inference is refused. */
  setPlan(input: { organization: string; plan: string | null }): Promise<Organization>;
  /** ISO 8601 with a zone, or a date (UTC). Weeks and months count from it once the current month has ended. */
  setAnchor(input: { organization: string; anchor: string }): Promise<Organization>;
  /** With a cap in units a billing month, extra usage is on; without one it is off. */
  setExtraUsage(input: { organization: string; capUnits: number | null }): Promise<Organization>;
}

/** For an organization that is created without naming a plan. */
export const plan_default = "starter";

export function organizationVerbs(context: ManagementContext): OrganizationVerbs {
  const { administration, actor, announce, catalog, newUuid, organizationOf } = context;

  type Write = (id: string) => Promise<Organization | null>;
  async function update({ id, slug }: Organization, write: Write): Promise<Organization> {
    const updated = await write(id);
    await announce(id);
    return updated ?? noOrganization(slug);
  }
  async function setStatus(slugOrId: unknown, status: Organization["status"]): Promise<Organization> {
    const organization = await organizationOf(slugOrId);
    if (organization.status === status) return organization;
    return update(organization, (id) => administration.setOrganizationStatus(id, status, actor));
  }
  const knownPlan = async (name: unknown) => parse.plan(name, [...(await catalog()).plans.keys()]);

  return {
    async createOrganization(input) {
      const slug = parse.slug(input.slug);
      const created = await administration.createOrganization({
        id: idOf(newUuid(), "org_"),
        slug,
        name: parse.isAbsent(input.name) ? slug : parse.name(input.name, "The organization's name"),
        plan: await knownPlan(input.plan ?? plan_default),
        actor,
      });
      if (created === "slug_taken") fail(`An organization '${slug}' already exists. Choose another slug.`);
      return created;
    },
    listOrganizations: () => administration.listOrganizations(),
    findOrganization: (input) => organizationOf(input.organization),
    suspendOrganization: (input) => setStatus(input.organization, "suspended"),
    resumeOrganization: (input) => setStatus(input.organization, "active"),
    async setPlan(input) {
      const plan = parse.isAbsent(input.plan) ? null : await knownPlan(input.plan);
      const organization = await organizationOf(input.organization);
      return update(organization, (id) => administration.setOrganizationPlan(id, plan, actor));
    },
    async setAnchor(input) {
      const anchorAt = parse.anchor(input.anchor);
      const organization = await organizationOf(input.organization);
      return update(organization, (id) => administration.setOrganizationAnchor(id, anchorAt, actor));
    },
    async setExtraUsage(input) {
      const { capUnits } = input;
      const extra = parse.isAbsent(capUnits)
        ? ({ enabled: false } as const)
        : ({ enabled: true, capUnits: parse.count(capUnits, units_max, "The cap") } as const);
      const organization = await organizationOf(input.organization);
      return update(organization, (id) => administration.setExtraUsage(id, extra, actor));
    },
  };
}
