/**
 * What an administrator can do: the rules over the store's plain verbs. The CLI speaks to this, directly or through the
 * socket of a running server (src/cli/socket.ts), so every argument is one object and is checked here as if nobody had.
 * A wrong wish is a Refusal; anything else that is thrown is an outage. A new secret is in the answer once and nowhere else.
 */
import type { Administration, AuditEntry, Key, Organization } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { key_random_bytes, newKey, secretOf } from "./key.ts";
import { Refusal } from "./refusal.ts";
import * as wish from "./wish.ts";

export interface Management {
  /** Without a plan: `starter`. */
  createOrganization(input: { slug: string; name?: string | null; plan?: string | null }): Promise<Organization>;
  listOrganizations(): Promise<Organization[]>;
  /** By slug or id, as everywhere. */
  findOrganization(input: { organization: string }): Promise<Organization>;
  suspendOrganization(input: { organization: string }): Promise<Organization>;
  resumeOrganization(input: { organization: string }): Promise<Organization>;

  /** Without scopes: all three. Without models: every model. `expires`: ISO 8601 with a zone, in the future. */
  createKey(input: {
    organization: string;
    name: string;
    scopes?: string[] | null;
    models?: string[] | null;
    expires?: string | null;
  }): Promise<NewKey>;
  /** Of one organization, or of all. */
  listKeys(input: { organization?: string | null }): Promise<OwnedKey[]>;
  findKey(input: { id: string }): Promise<OwnedKey>;
  /**
   * A second secret for the same key. `grace` (`30m`, `1h`, `7d`, `0s`) is how long the older ones go on; without it they
   * go on until they are revoked.
   */
  rotateKey(input: { id: string; grace?: string | null }): Promise<NewKey>;
  /** The key, or with `old` only the secrets that a rotation replaced. Again is as good as once. */
  revokeKey(input: { id: string; old?: boolean }): Promise<OwnedKey>;

  /** Newest first; `limit` 1 to 1,000, else 50. */
  listAudit(input: { organization?: string | null; limit?: number | null }): Promise<AuditEntry[]>;
}

export interface OwnedKey {
  key: Key;
  organization: Organization;
}
export interface NewKey extends OwnedKey {
  /** The whole key, in the clear: the only time that it is seen. */
  secret: string;
}

/** What an organization gets when nobody names a plan. */
export const plan_default = "starter";

/** Names of what the catalog in force has. */
export interface CatalogNames {
  plans: readonly string[];
  models: readonly string[];
}

export interface ManagementOptions {
  administration: Administration;
  /** Asked only by verbs that need it. */
  catalog: () => CatalogNames | Promise<CatalogNames>;
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

export function management(options: ManagementOptions): Management {
  const acting = actingFor(options);
  return { ...organizationVerbs(acting), ...keyVerbs(acting), ...auditVerbs(acting) };
}

type OrganizationVerb = "createOrganization" | "listOrganizations" | `${"find" | "suspend" | "resume"}Organization`;
type KeyVerb = "createKey" | "listKeys" | "findKey" | "rotateKey" | "revokeKey";

function organizationVerbs(acting: Acting): Pick<Management, OrganizationVerb> {
  const { administration, actor, catalog, newUuid } = acting;

  async function setStatus(slugOrId: unknown, status: Organization["status"]): Promise<Organization> {
    const organization = await acting.organizationOf(slugOrId);
    if (organization.status === status) return organization;
    const changed = await administration.setOrganizationStatus(organization.id, status, actor);
    await acting.announce(organization.id);
    return changed ?? refuse(`There is no organization '${organization.slug}' any more.`);
  }

  return {
    async createOrganization(input) {
      const slug = wish.slug(input.slug);
      const { plans } = await catalog();
      const made = await administration.createOrganization({
        id: idOf(newUuid(), "org_"),
        slug,
        name: wish.isAbsent(input.name) ? slug : wish.name(input.name, "The organization's name"),
        plan: wish.plan(input.plan ?? plan_default, plans),
        actor,
      });
      if (made === "slug_taken") refuse(`An organization '${slug}' exists already. Choose another slug.`);
      return made;
    },
    listOrganizations: () => administration.listOrganizations(),
    findOrganization: (input) => acting.organizationOf(input.organization),
    suspendOrganization: (input) => setStatus(input.organization, "suspended"),
    resumeOrganization: (input) => setStatus(input.organization, "active"),
  };
}

function keyVerbs(acting: Acting): Pick<Management, KeyVerb> {
  const { administration, actor, catalog, newUuid, nowMs } = acting;
  return {
    async createKey(input) {
      const name = wish.name(input.name, "The key's name");
      const scopes = wish.scopes(input.scopes);
      const allowedModels = wish.isAbsent(input.models) ? null : wish.models(input.models, (await catalog()).models);
      const expiresAt = wish.isAbsent(input.expires) ? null : wish.futureInstant(input.expires, nowMs());
      const organization = await acting.organizationOf(input.organization);
      const secret = newKey(acting.random(key_random_bytes));
      const key = await administration.createKey({
        id: idOf(newUuid(), "key_"),
        organizationId: organization.id,
        name,
        scopes,
        allowedModels,
        expiresAt,
        secret: secretOf(secret),
        actor,
      });
      return { key, organization, secret };
    },
    async listKeys(input) {
      const organizations = wish.isAbsent(input.organization)
        ? await administration.listOrganizations()
        : [await acting.organizationOf(input.organization)];
      const lists: OwnedKey[] = [];
      for (const organization of organizations) {
        for (const key of await administration.listKeys(organization.id)) lists.push({ key, organization });
      }
      return lists;
    },
    findKey: async (input) => acting.owned(await acting.keyOf(input.id)),
    async rotateKey(input) {
      const grace_ms = wish.isAbsent(input.grace) ? null : wish.duration(input.grace);
      const { id, revokedAt, expiresAt } = await acting.keyOf(input.id);
      if (revokedAt) refuse(cannotRotate(id, "is revoked"));
      if (expiresAt && expiresAt.getTime() <= nowMs()) refuse(cannotRotate(id, "has expired"));
      const secret = newKey(acting.random(key_random_bytes));
      const graceEndsAt = grace_ms === null ? null : new Date(nowMs() + grace_ms);
      let key = await administration.rotateKey({ id, secret: secretOf(secret), graceEndsAt, actor });
      if (key === "revoked") refuse(cannotRotate(id, "is revoked"));
      // No grace at all is a revocation: a deadline would be this machine's clock, and the store's may be behind it.
      if (key && grace_ms === 0) key = await administration.revokeKey({ id, old: true, actor });
      await acting.announce(id);
      return { ...(await acting.owned(key ?? noKey(id))), secret };
    },
    async revokeKey(input) {
      const { id } = await acting.keyOf(input.id);
      const key = await administration.revokeKey({ id, old: input.old === true, actor });
      await acting.announce(id);
      return acting.owned(key ?? noKey(id));
    },
  };
}

function auditVerbs({ administration, organizationOf }: Acting): Pick<Management, "listAudit"> {
  return {
    async listAudit(input) {
      const limit = wish.count(input.limit ?? 50, 1000, "The number of entries");
      if (wish.isAbsent(input.organization)) return administration.listAudit({ limit });
      const { id } = await organizationOf(input.organization);
      return administration.listAudit({ organizationId: id, limit });
    },
  };
}

type Acting = ReturnType<typeof actingFor>;

/** What the verbs have in common: finding what is meant, and telling the nodes. */
function actingFor(options: ManagementOptions) {
  const { administration } = options;
  return {
    ...options,
    async organizationOf(slugOrId: unknown): Promise<Organization> {
      const asked = wish.text(slugOrId, "an organization's slug or id");
      const organization = await administration.findOrganization(asked);
      return (
        organization ?? refuse(`There is no organization '${wish.shown(asked)}'. 'sluice org list' shows them all.`)
      );
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

/** The verbs by name, for a door that takes them from outside. */
export const managementVerbs = [
  "createOrganization",
  "listOrganizations",
  "findOrganization",
  "suspendOrganization",
  "resumeOrganization",
  "createKey",
  "listKeys",
  "findKey",
  "rotateKey",
  "revokeKey",
  "listAudit",
] as const satisfies readonly (keyof Management)[];

function cannotRotate(id: string, why: string): string {
  return `The key ${id} ${why} and cannot be rotated. Create a new one.`;
}

function noKey(id: string): never {
  return refuse(`There is no key '${wish.shown(id)}'. 'sluice key list' shows them all.`);
}

function refuse(message: string): never {
  throw new Refusal(message);
}
