/** What an administrator does with organizations: create, find, suspend, and change what they may use. */
import type { Organization, Stale } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { units_max } from "../store/ledger.ts";
import { type ManagementContext, noOrganization, reusedKey } from "./context.ts";
import { fail, ManagementError } from "./error.ts";
import { type Paged, type PageInput, paged, pageOf } from "./page.ts";
import * as parse from "./parse.ts";

export interface OrganizationVerbs {
  /** Without a plan: `starter`. */
  createOrganization(input: { slug: string; name?: string | null; plan?: string | null }): Promise<Organization>;
  listOrganizations(): Promise<Organization[]>;
  /** A part of them, in the order in which they were made; `limit` 1 to 1,000, else 100. */
  pageOrganizations(input: PageInput & { status?: string | null; plan?: string | null }): Promise<Paged<Organization>>;
  /** `organization` is a slug or an id, here and in every verb. */
  findOrganization(input: { organization: string }): Promise<Organization>;
  /** With a version, here and below: only if the organization has it still. */
  suspendOrganization(input: { organization: string } & Versioned): Promise<Organization>;
  resumeOrganization(input: { organization: string } & Versioned): Promise<Organization>;
  /** The limits apply from the next request on; usage and boundaries stay. Null: no plan, so inference is refused. */
  setPlan(input: { organization: string; plan: string | null } & Versioned): Promise<Organization>;
  /** ISO 8601 with a zone, or a date (UTC). Weeks and months count from it once the current month has ended. */
  setAnchor(input: { organization: string; anchor: string } & Versioned): Promise<Organization>;
  /** With a cap in units a billing month, extra usage is on; without one it is off. */
  setExtraUsage(input: { organization: string; capUnits: number | null } & Versioned): Promise<Organization>;
}

/** What the caller has read: the change is refused if the organization has changed since. */
interface Versioned {
  version?: number | null;
}

const organizationStates = ["active", "suspended"] as const;

/** For an organization that is created without naming a plan. */
export const plan_default = "starter";

export function organizationVerbs(context: ManagementContext): OrganizationVerbs {
  const { administration, actor, announce, catalog, newUuid, organizationOf, within } = context;

  type Write = (id: string, version: number | null) => Promise<Organization | Stale | "no_plan" | null>;
  async function update({ id, slug }: Organization, input: Versioned, write: Write): Promise<Organization> {
    const version = parse.isAbsent(input.version) ? null : parse.count(input.version, units_max, "The version");
    const updated = await write(id, version);
    if (updated === "no_plan") return removedPlan();
    if (updated && "stale" in updated) return staleAt(updated.stale, version!);
    await announce(id);
    return updated ?? noOrganization(slug);
  }
  async function staleAt(current: Organization, version: number): Promise<never> {
    const [last] = await administration.listAudit({ organizationId: current.id, limit: 1 });
    const who = last ? ` The last change was ${last.action} by ${last.actor}, at ${last.at.toISOString()}.` : "";
    throw new ManagementError(
      `Organization '${current.slug}' has version ${current.version} now, not ${version}: it changed since you read it, and you would overwrite that.${who}`,
      "stale",
      current,
    );
  }
  async function setStatus(
    input: { organization: string } & Versioned,
    status: Organization["status"],
  ): Promise<Organization> {
    const organization = await organizationOf(input.organization);
    if (organization.status === status && parse.isAbsent(input.version)) return organization;
    return update(organization, input, (id, version) =>
      administration.setOrganizationStatus(id, status, actor, version),
    );
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
        repeat: context.repeatOf("createOrganization", input),
      });
      if (created === "slug_taken") fail(`An organization '${slug}' already exists. Choose another slug.`, "taken");
      if (created === "no_plan") return removedPlan();
      if (created === "reused") return reusedKey();
      return "repeated" in created ? organizationOf(created.repeated) : created;
    },
    async pageOrganizations(input) {
      const { limit, after } = pageOf(input, "org_");
      if (within !== null) return { items: after === within ? [] : [await organizationOf(within)], next: null };
      const status = parse.isAbsent(input.status)
        ? undefined
        : parse.choice(input.status, organizationStates, "status");
      const plan = parse.isAbsent(input.plan) ? undefined : parse.text(input.plan, "a plan's name");
      return paged(await administration.pageOrganizations({ after, limit, status, plan }), ({ id }) => id);
    },
    listOrganizations: async () =>
      within === null ? administration.listOrganizations() : [await organizationOf(within)],
    findOrganization: (input) => organizationOf(input.organization),
    suspendOrganization: (input) => setStatus(input, "suspended"),
    resumeOrganization: (input) => setStatus(input, "active"),
    async setPlan(input) {
      const plan = parse.isAbsent(input.plan) ? null : await knownPlan(input.plan);
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

function removedPlan(): never {
  return fail("This plan was removed meanwhile. To list all plans, run: sluice plan list");
}
