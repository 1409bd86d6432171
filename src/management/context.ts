/** What every verb works with: the stores, the actor, look-ups by name, and announcements to the nodes. */

import { hashKey } from "../auth/key.ts";
import { canonical } from "../store/audit-chain.ts";
import type { Actor, Administration, Key, Organization } from "../store/directory.ts";
import type { Ledger } from "../store/ledger.ts";
import type { NoticeAdministration } from "../store/notice.ts";
import type { Operators } from "../store/operators.ts";
import type { Repeat } from "../store/page.ts";
import type { Plan, PlanAdministration } from "../store/plan.ts";
import type { RefusedRequests } from "../store/refused.ts";
import { fail } from "./error.ts";
import type { OwnedKey } from "./owned.ts";
import * as parse from "./parse.ts";
import type { Pricing } from "./pricing.ts";

/** What the catalog in force has. */
export interface ManagedCatalog {
  plans: ReadonlyMap<string, Plan>;
  /** Public ids. */
  models: readonly string[];
  /** What units cost; absent or null: no price is set. */
  pricing?: Pricing | null;
}

export interface ManagementOptions {
  administration: Administration;
  ledger: Pick<Ledger, "reading" | "check" | "sealed" | "lost" | "now" | "report" | "receiptOfAny">;
  refused: Pick<RefusedRequests, "find">;
  /** Called only by verbs that need it. */
  catalog: () => ManagedCatalog | Promise<ManagedCatalog>;
  operators: Operators;
  plans: PlanAdministration;
  notices: NoticeAdministration;
  /** Who acts, for the audit log: `operator:<name>`, `cli:<user>` or `service`. */
  actor: Actor;
  /** The one organization whose things there are for who acts; null or absent: all. */
  within?: string | null | undefined;
  /** What a creation is known by, should it be asked for again. */
  repeatKey?: string | null | undefined;
  now_ms: () => number;
  /** A UUIDv7, dashed. */
  newUuid: () => string;
  /** So many bytes from a cryptographic source. */
  random: (bytes: number) => Uint8Array;
  /**
   * Tells this process that a key or an organization changed; other nodes hear it from the database. A failure is
   * harmless: caches last one second.
   */
  changed?: ((keyOrOrganizationId: string) => void | Promise<void>) | undefined;
}

export type ManagementContext = ReturnType<typeof managementContext>;

export function managementContext(options: ManagementOptions) {
  const { administration, within = null } = options;
  /** Every verb finds its organization here: one that is not in sight is not there. */
  async function organizationOf(slugOrId: unknown): Promise<Organization> {
    const name = parse.text(slugOrId, "an organization's slug or ID");
    const found = await administration.findOrganization(name);
    if (found && isWithin(within, found.id)) return found;
    const renamed = found ? null : await administration.formerOwner(name);
    return noOrganization(name, renamed && isWithin(within, renamed.id) ? renamed : null);
  }
  return {
    ...options,
    within,
    organizationOf,
    /** The same, where something is to be made or changed in it. */
    async openOrganization(slugOrId: unknown): Promise<Organization> {
      const found = await organizationOf(slugOrId);
      return found.status === "closed" ? isClosed(found.slug) : found;
    },
    knownPlan: async (name: unknown) => parse.plan(name, [...(await options.catalog()).plans.keys()]),
    /** The organization to which a list is narrowed: the one that is asked for, or the one in sight. */
    async narrowedTo(slugOrId: unknown): Promise<string | undefined> {
      if (!parse.isAbsent(slugOrId)) return (await organizationOf(slugOrId)).id;
      return within ?? undefined;
    },
    isInSight: (organizationId: string | null) => isWithin(within, organizationId),
    /** What the store knows a creation by; absent where the request has no key. */
    repeatOf(verb: string, input: unknown): Repeat | undefined {
      const { repeatKey } = options;
      if (parse.isAbsent(repeatKey)) return undefined;
      return { keyHash: hashKey(repeatKey), requestHash: hashKey(canonical([verb, input])) };
    },
    async keyOf(id: unknown): Promise<Key> {
      const name = parse.text(id, "a key's ID");
      if (name.startsWith("slk_"))
        fail("That is the API key itself. Specify its ID instead, which begins with 'key_'.");
      const found = await administration.findKey(name);
      return found && isWithin(within, found.organizationId) ? found : noKey(name);
    },
    async withOrganization(key: Key): Promise<OwnedKey> {
      const organization = await administration.findOrganization(key.organizationId);
      if (!organization) throw new Error(`the organization of ${key.id} is gone`);
      return { key, organization };
    },
    async announce(id: string): Promise<void> {
      try {
        await options.changed?.(id);
      } catch {
        // The change is stored; a node that did not hear of it sees it within a second.
      }
    },
  };
}

function isWithin(within: string | null, organizationId: string | null): boolean {
  return within === null || within === organizationId;
}

/** `renamed`: which one was called so before. */
export function noOrganization(slugOrId: string, renamed: Organization | null = null): never {
  const next = renamed ? `It was renamed to '${renamed.slug}'.` : "To list all organizations, run: sluice org list";
  return fail(`There is no organization '${parse.excerpt(slugOrId)}'. ${next}`, "not_found");
}

export function isClosed(slug: string): never {
  return fail(`Organization '${slug}' is closed, and cannot be changed any more.`, "state");
}

export function noKey(id: string): never {
  return fail(`There is no key '${parse.excerpt(id)}'. To list all keys, run: sluice key list`, "not_found");
}

export function reusedKey(): never {
  return fail("This Idempotency-Key came with another request before. Use a new one for each creation.", "reused");
}
