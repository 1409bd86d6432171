/** What every verb works with: the stores, the actor, look-ups by name, and announcements to the nodes. */
import type { Administration, Key, Organization } from "../store/directory.ts";
import type { Ledger } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RefusedRequests } from "../store/refused.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import type { Pricing } from "./pricing.ts";

export interface OwnedKey {
  key: Key;
  organization: Organization;
}

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
  ledger: Pick<Ledger, "reading" | "check" | "sealed" | "lost" | "report" | "receiptOfAny">;
  refused: Pick<RefusedRequests, "find">;
  /** Called only by verbs that need it. */
  catalog: () => ManagedCatalog | Promise<ManagedCatalog>;
  /** Who acts, for the audit log: `cli:<user>` or `service`. */
  actor: string;
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
  const { administration } = options;
  return {
    ...options,
    async organizationOf(slugOrId: unknown): Promise<Organization> {
      const name = parse.text(slugOrId, "an organization's slug or ID");
      return (await administration.findOrganization(name)) ?? noOrganization(name);
    },
    async keyOf(id: unknown): Promise<Key> {
      const name = parse.text(id, "a key's ID");
      if (name.startsWith("slk_"))
        fail("That is the API key itself. Specify its ID instead, which begins with 'key_'.");
      return (await administration.findKey(name)) ?? noKey(name);
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

export function noOrganization(slugOrId: string): never {
  return fail(`There is no organization '${parse.excerpt(slugOrId)}'. To list all organizations, run: sluice org list`);
}

export function noKey(id: string): never {
  return fail(`There is no key '${parse.excerpt(id)}'. To list all keys, run: sluice key list`);
}
