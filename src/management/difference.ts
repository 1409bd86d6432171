/** The changes that make organizations as they are wanted. Pure. */
import type { Organization, OrganizationStatus, Policies } from "../store/directory.ts";
import { fail } from "./error.ts";
import type { WantedKey } from "./key-difference.ts";
import { plan_default } from "./organizations.ts";

/** A wanted organization. An absent member stays as it is. */
export interface WantedOrganization extends Partial<Policies> {
  slug: string;
  name?: string;
  /** Null: none. */
  plan?: string | null;
  status?: OrganizationStatus;
  /** The cap of extra usage; null: off. */
  capUnits?: number | null;
  /** The keys that are compared; others are left alone (key-difference.ts). */
  keys?: WantedKey[];
}

export interface Change {
  slug: string;
  field: "organization" | "name" | "plan" | "status" | "extra_usage_cap_units" | PolicyName;
  /** Null: none; of an organization, it does not exist. */
  from: string | number | boolean | null;
  to: string | number | boolean | null;
}

/** The names of policies in files and interfaces. */
export const policyNames = {
  key_lifetime_max_days: "keyLifetimeMaxDays",
  key_unused_max_days: "keyUnusedMaxDays",
  keeps_content: "keepsContent",
} as const satisfies Record<string, keyof Policies>;
export type PolicyName = keyof typeof policyNames;

/** The changes in the order in which they are to be made. Throws a ManagementError if the wanted state cannot be reached. */
export function changesTo(
  wanted: readonly WantedOrganization[],
  existing: ReadonlyMap<string, Organization>,
  plans: readonly string[],
): Change[] {
  const renamed = new Map([...existing.values()].flatMap((one) => one.formerSlugs.map((slug) => [slug, one.slug])));
  return wanted.flatMap((one) => {
    const { slug, plan } = one;
    if (one.status === "closed" && one.keys?.length) {
      fail(`Organization '${slug}' is to be closed, which revokes its keys. Take them out of the file.`);
    }
    if (typeof plan === "string" && !plans.includes(plan)) {
      fail(`There is no plan '${plan}', which '${slug}' is to have. There are: ${plans.join(", ")}.`);
    }
    const now = existing.get(slug) ?? null;
    if (!now && renamed.has(slug)) {
      fail(`Organization '${slug}' is called '${renamed.get(slug)}' now. Correct the file.`);
    }
    return now?.status === "closed" ? nothingOf(one, now) : changesOf(one, now);
  });
}

/** One that is closed cannot become anything else. */
function nothingOf(wanted: WantedOrganization, now: Organization): Change[] {
  if (wanted.status === "closed" || changesOf(wanted, now).length === 0) return [];
  return fail(
    `Organization '${now.slug}' is closed and cannot be changed. Say so in the file (status: closed), or take it out.`,
  );
}

function changesOf(wanted: WantedOrganization, now: Organization | null): Change[] {
  const { slug, name, plan, status, capUnits } = wanted;
  const change = (field: Change["field"], from: Change["from"], to: Change["from"] | undefined): Change[] =>
    to === undefined || from === to ? [] : [{ slug, field, from, to }];
  const cap = now?.extraUsage.enabled ? now.extraUsage.capUnits : null;
  const planNow = now ? now.plan : (plan ?? plan_default);
  const policies = Object.entries(policyNames).flatMap(([field, policy]) =>
    change(field as PolicyName, (now ?? newPolicies)[policy], wanted[policy]),
  );
  return [
    ...(now ? change("name", now.name, name) : change("organization", null, name ?? slug)),
    ...change("plan", planNow, plan),
    ...change("extra_usage_cap_units", cap, capUnits),
    ...policies,
    ...change("status", now?.status ?? "active", status),
  ];
}

const newPolicies: Policies = { keyLifetimeMaxDays: null, keyUnusedMaxDays: null, keepsContent: true };
