/** What has to change so that organizations are as somebody wants them. Pure. */
import type { Organization } from "../store/directory.ts";
import { fail } from "./error.ts";
import { plan_default } from "./organizations.ts";

/** What is absent may be anything, and stays as it is. */
export interface WantedOrganization {
  slug: string;
  /** Only for one that is created: an organization keeps its name. */
  name?: string;
  /** Null: none. */
  plan?: string | null;
  status?: Organization["status"];
  /** Of extra usage; null: off. */
  capUnits?: number | null;
}

export interface Change {
  slug: string;
  field: "organization" | "plan" | "status" | "extra_usage_cap_units";
  /** Null: none; of an organization, it does not exist. */
  from: string | number | null;
  to: string | number | null;
}

/** In the order in which they are to be made. Throws a ManagementError where that cannot be had. */
export function changesTo(
  wanted: readonly WantedOrganization[],
  existing: ReadonlyMap<string, Organization>,
  plans: readonly string[],
): Change[] {
  return wanted.flatMap((one) => {
    if (typeof one.plan === "string" && !plans.includes(one.plan)) {
      fail(`There is no plan '${one.plan}', which '${one.slug}' is to have. There are: ${plans.join(", ")}.`);
    }
    return changesOf(one, existing.get(one.slug) ?? null);
  });
}

function changesOf(wanted: WantedOrganization, now: Organization | null): Change[] {
  const { slug, name, plan, status, capUnits } = wanted;
  if (now && name !== undefined && name !== now.name) {
    fail(`Organization '${slug}' has the name '${now.name}', not '${name}', and cannot be renamed. Correct the file.`);
  }
  const change = (field: Change["field"], from: Change["from"], to: Change["from"] | undefined): Change[] =>
    to === undefined || from === to ? [] : [{ slug, field, from, to }];
  const cap = now?.extraUsage.enabled ? now.extraUsage.capUnits : null;
  const planNow = now ? now.plan : (plan ?? plan_default);
  return [
    ...(now ? [] : change("organization", null, name ?? slug)),
    ...change("plan", planNow, plan),
    ...change("extra_usage_cap_units", cap, capUnits),
    ...change("status", now?.status ?? "active", status),
  ];
}
