/** What an administrator does with organizations: create and find. organization-changes.ts has the rest. */
import { type Organization, organizationStatuses } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { removedPlan } from "./organization-changes.ts";
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
}

/** For an organization that is created without naming a plan. */
export const plan_default = "starter";

export function organizationVerbs(context: ManagementContext): OrganizationVerbs {
  const { administration, actor, newUuid, organizationOf, within } = context;
  return {
    async createOrganization(input) {
      const slug = parse.slug(input.slug);
      const created = await administration.createOrganization({
        id: idOf(newUuid(), "org_"),
        slug,
        name: parse.isAbsent(input.name) ? slug : parse.name(input.name, "The organization's name"),
        plan: await context.knownPlan(input.plan ?? plan_default),
        actor,
        repeat: context.repeatOf("createOrganization", input),
      });
      if (created === "slug_taken") return takenSlug(slug);
      if (created === "no_plan") return removedPlan();
      if (created === "reused") return reusedKey();
      return "repeated" in created ? organizationOf(created.repeated) : created;
    },
    async pageOrganizations(input) {
      const { limit, after } = pageOf(input, "org_");
      if (within !== null) return { items: after === within ? [] : [await organizationOf(within)], next: null };
      const status = parse.isAbsent(input.status)
        ? undefined
        : parse.choice(input.status, organizationStatuses, "status");
      const plan = parse.isAbsent(input.plan) ? undefined : parse.text(input.plan, "a plan's name");
      return paged(await administration.pageOrganizations({ after, limit, status, plan }), ({ id }) => id);
    },
    listOrganizations: async () =>
      within === null ? administration.listOrganizations() : [await organizationOf(within)],
    findOrganization: (input) => organizationOf(input.organization),
  };

  async function takenSlug(slug: string): Promise<never> {
    const former = await administration.formerOwner(slug);
    return fail(
      former
        ? `The slug '${slug}' was that of '${former.slug}' before, and is not used again. Choose another slug.`
        : `An organization '${slug}' already exists. Choose another slug.`,
      "taken",
    );
  }
}
