/**
 * The common parts of every change of an organization: its fields, and the sentences with which a change is refused.
 */
import { instant } from "../../core/time/written.ts";
import type { Changed } from "../store/administration.ts";
import { isClosed, type ManagementContext, noOrganization } from "./context.ts";
import { fail } from "./error.ts";
import { Organization, removedPlan, shownOrganization } from "./organizations.ts";
import * as parse from "./parse.ts";
import { admins } from "./shapes.ts";
import { changed } from "./version.ts";

export const sent = { organization: "acme" };
/** The common fields of all verbs that change an organization. */
export const change = {
  roles: admins,
  kind: "change",
  faults: ["resource_not_found", "wrong_state", "version_conflict"],
  answers: Organization,
} as const;

export interface OrganizationChange {
  organization: string;
  version?: number;
  /** The new slug, if the change sets one. */
  slug?: string | null;
}
type Refused = "no_plan" | "slug_taken" | "has_calendar" | "calendar_changes";
type Write = (id: string, version: number | null) => Promise<Changed | Refused>;

export async function changeOrganization(
  context: ManagementContext,
  input: OrganizationChange,
  write: Write,
): Promise<Organization> {
  const { id, slug } = await context.organizationOf(input.organization);
  const answer = await write(id, input.version ?? null);
  return changed(
    context,
    { read: input.version, id },
    {
      schema: Organization,
      title: (now) => `Organization '${now.slug}'`,
      listed: (now) => shownOrganization(context, now),
      refusals: {
        gone: () => noOrganization(slug),
        closed: () => isClosed(slug),
        no_plan: removedPlan,
        has_calendar: () =>
          fail(
            `Weeks and months of '${slug}' are counted by its calendar, and not from the start of a billing cycle. To take it away, run: sluice org update ${slug} --no-zone`,
            "wrong_state",
          ),
        calendar_changes: () => calendarChanges(context, id),
        slug_taken: () => {
          const taken = parse.excerpt(input.slug ?? "");
          return fail(`The slug '${taken}' is or was another organization's. Choose another one.`, "already_exists");
        },
      },
    },
    answer,
  );
}

async function calendarChanges({ organizationOf }: ManagementContext, id: string): Promise<never> {
  const { slug, nextCalendar } = await organizationOf(id);
  const until = nextCalendar ? `, on ${instant(nextCalendar.countsFrom)}` : "";
  return fail(
    `The calendar of '${slug}' was already changed this month, and can be changed again when the month ends${until}.`,
    "wrong_state",
  );
}
