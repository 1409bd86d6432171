/** What the verbs of management have in common: what they are done with, finding what is meant, and telling the nodes. */
import type { Administration, Key, Organization } from "../store/directory.ts";
import type { Ledger } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RefusedRequests } from "../store/refused.ts";
import { Refusal } from "./refusal.ts";
import * as wish from "./wish.ts";

export interface OwnedKey {
  key: Key;
  organization: Organization;
}

/** What the catalog in force has. */
export interface ManagedCatalog {
  plans: ReadonlyMap<string, Plan>;
  /** Public ids. */
  models: readonly string[];
}

export interface ManagementOptions {
  administration: Administration;
  ledger: Pick<Ledger, "reading" | "check" | "receiptOfAny">;
  refused: Pick<RefusedRequests, "find">;
  /** Asked only by verbs that need it. */
  catalog: () => ManagedCatalog | Promise<ManagedCatalog>;
  /** Who does it, for the audit log: `cli:<user>` or `service`. */
  actor: string;
  nowMs: () => number;
  /** A UUIDv7, dashed. */
  newUuid: () => string;
  /** So many bytes of a cryptographic source. */
  random: (bytes: number) => Uint8Array;
  /** Tells the nodes that a key or an organization changed; waited for, and a failure costs only their second of cache. */
  changed?: (keyOrOrganizationId: string) => void | Promise<void>;
}

export type Acting = ReturnType<typeof actingFor>;

export function actingFor(options: ManagementOptions) {
  const { administration } = options;
  return {
    ...options,
    async organizationOf(slugOrId: unknown): Promise<Organization> {
      const asked = wish.text(slugOrId, "an organization's slug or id");
      return (await administration.findOrganization(asked)) ?? noOrganization(asked);
    },
    async keyOf(id: unknown): Promise<Key> {
      const asked = wish.text(id, "a key's id");
      if (asked.startsWith("slk_")) refuse("That is a key itself; name it by its id, which begins with 'key_'.");
      return (await administration.findKey(asked)) ?? noKey(asked);
    },
    async owned(key: Key): Promise<OwnedKey> {
      const organization = await administration.findOrganization(key.organizationId);
      if (!organization) throw new Error(`the organization of ${key.id} is gone`);
      return { key, organization };
    },
    async announce(id: string): Promise<void> {
      try {
        await options.changed?.(id);
      } catch {
        // The change is written; a node that was not told of it sees it within a second.
      }
    },
  };
}

export function noOrganization(slugOrId: string): never {
  return refuse(`There is no organization '${wish.shown(slugOrId)}'. 'sluice org list' shows them all.`);
}

export function noKey(id: string): never {
  return refuse(`There is no key '${wish.shown(id)}'. 'sluice key list' shows them all.`);
}

export function refuse(message: string): never {
  throw new Refusal(message);
}
