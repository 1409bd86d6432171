/** What an administrator does with keys. A new secret is returned once and is nowhere else. */

import { key_random_bytes, newKey, secretOf } from "../auth/key.ts";
import { keyStates, type Organization } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import type { LimitChanges } from "./budget-limits.ts";
import { newKeyBudget, noTeam } from "./budgets.ts";
import { isClosed, type ManagementContext, noKey, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { changeOf, type KeyChanges, newKeyOf } from "./key-change.ts";
import type { OwnedKey } from "./owned.ts";
import { allPages, type Paged, type PageInput, page_max, paged, pageOf } from "./page.ts";
import * as parse from "./parse.ts";
import { lastChange, stale, type Versioned, versionIn } from "./version.ts";

export interface KeyVerbs {
  /** Without scopes: all three. Without models: every model. `expires`: ISO 8601 with a zone, in the future. */
  createKey(
    input: KeyChanges & {
      organization: string;
      name: string;
      /** ID or name of a team of the organization. */
      team?: string | null;
      /** On top of what its team or its organization gives a new key; null takes a limit away. */
      limits?: LimitChanges | null;
    },
  ): Promise<NewKey>;
  /** Of one organization, or of all. */
  listKeys(input: { organization?: string | null } & KeyFilter): Promise<OwnedKey[]>;
  /** A part of them, in the order in which they were made; `limit` 1 to 1,000, else 100. */
  pageKeys(input: PageInput & { organization?: string | null } & KeyFilter): Promise<Paged<OwnedKey>>;
  /** What is left out stays. A revoked key cannot be changed. It counts on every node within a second. */
  updateKey(input: { id: string } & KeyChanges & Versioned): Promise<OwnedKey>;
  findKey(input: { id: string }): Promise<OwnedKey>;
  /**
   * Adds a second secret to the key. `grace` (`30m`, `1h`, `7d`, `0s`) is how long the older ones keep working; without
   * it, they work until they are revoked.
   */
  rotateKey(input: { id: string; grace?: string | null }): Promise<NewKey>;
  /** Revokes the key, or with `old` only the secrets that a rotation replaced. Idempotent. */
  revokeKey(input: { id: string; old?: boolean }): Promise<OwnedKey>;
}

interface KeyFilter {
  state?: string | null;
  /** `30d`: only keys that were not used for so long; one that was never used counts from its creation. */
  unusedFor?: string | null;
}

export interface NewKey extends OwnedKey {
  /** The whole key, in plain text: the only time that anybody sees it. Empty: the request was a repeat. */
  secret: string;
}

export function keyVerbs(context: ManagementContext): KeyVerbs {
  const {
    administration,
    actor,
    announce,
    catalog,
    keyOf,
    narrowedTo,
    newUuid,
    now_ms,
    openOrganization,
    organizationOf,
    random,
    withOrganization,
  } = context;
  async function keysOf(organizationId: string, filter: ReturnType<typeof filterOf>) {
    return allPages(async ({ cursor, limit = page_max }) => {
      const page = { after: cursor ?? undefined, limit: limit ?? page_max };
      return paged(await administration.pageKeys({ ...page, ...filter, organizationId }), ({ id }) => id);
    });
  }
  return {
    async createKey(input) {
      const { models } = parse.isAbsent(input.models) ? { models: [] } : await catalog();
      const wanted = newKeyOf(input, { models, now_ms: now_ms() });
      const organization = await openOrganization(input.organization);
      livesNoLonger(wanted.expiresAt, organization, now_ms());
      const budget = await newKeyBudget(context, organization, input);
      const secret = newKey(random(key_random_bytes));
      const key = await administration.createKey({
        id: idOf(newUuid(), "key_"),
        organizationId: organization.id,
        ...wanted,
        ...budget,
        secret: secretOf(secret),
        actor,
        repeat: context.repeatOf("createKey", input),
      });
      if (key === "no_team") return noTeam(budget.teamId ?? "");
      if (key === "closed") return isClosed(organization.slug);
      if (key === "reused") return reusedKey();
      if ("repeated" in key) return { ...(await withOrganization(await keyOf(key.repeated))), secret: "" };
      return { key, organization, secret };
    },
    async listKeys(input) {
      const filter = filterOf(input);
      const one = await narrowedTo(input.organization);
      const organizations = one === undefined ? await administration.listOrganizations() : [await organizationOf(one)];
      const lists: OwnedKey[] = [];
      for (const organization of organizations) {
        for (const key of await keysOf(organization.id, filter)) lists.push({ key, organization });
      }
      return lists;
    },
    async pageKeys(input) {
      const page = pageOf(input, "key_");
      const organizationId = await narrowedTo(input.organization);
      const found = await administration.pageKeys({ ...page, ...filterOf(input), organizationId });
      const { items, next } = paged(found, ({ id }) => id);
      const owners = new Map<string, Organization>();
      for (const { organizationId: id } of items) {
        if (!owners.has(id)) owners.set(id, await organizationOf(id));
      }
      return { items: items.map((key) => ({ key, organization: owners.get(key.organizationId)! })), next };
    },
    async updateKey({ id: given, version: read, ...changes }) {
      const version = versionIn({ version: read ?? null });
      const key = await keyOf(given);
      const { models } = parse.isAbsent(changes.models) ? { models: [] } : await catalog();
      const change = changeOf(changes, key, { models, now_ms: now_ms() });
      if (key.revokedAt) fail(`The key ${key.id} is revoked and cannot be changed. Create a new one.`, "state");
      const organization = await organizationOf(key.organizationId);
      livesNoLonger(change.expiresAt, organization, key.secrets[0]?.createdAt.getTime() ?? now_ms());
      const updated = await administration.updateKey(key.id, change, actor, version);
      if (updated && "stale" in updated) {
        const current = { key: updated.stale, organization };
        const last = await lastChange(administration, { id: organization.id, subject: key.id });
        return stale(`Key '${current.key.name}'`, { now: current.key.version, read: version!, current, last });
      }
      await announce(key.id);
      return withOrganization(updated ?? noKey(key.id));
    },
    findKey: async (input) => withOrganization(await keyOf(input.id)),
    async rotateKey(input) {
      const grace_ms = parse.isAbsent(input.grace) ? null : parse.duration(input.grace);
      const { id, revokedAt, expiresAt } = await keyOf(input.id);
      if (revokedAt) fail(cannotRotate(id, "is revoked"), "state");
      if (expiresAt && expiresAt.getTime() <= now_ms()) fail(cannotRotate(id, "has expired"), "state");
      const secret = newKey(random(key_random_bytes));
      const graceEndsAt = grace_ms === null ? null : new Date(now_ms() + grace_ms);
      let key = await administration.rotateKey({ id, secret: secretOf(secret), graceEndsAt, actor });
      if (key === "revoked") fail(cannotRotate(id, "is revoked"), "state");
      // No grace at all is a revocation: a deadline would be read from this machine's clock, and the store's may be behind it.
      if (key && grace_ms === 0) key = await administration.revokeKey({ id, old: true, actor });
      await announce(id);
      return { ...(await withOrganization(key ?? noKey(id))), secret };
    },
    async revokeKey(input) {
      const { id } = await keyOf(input.id);
      const key = await administration.revokeKey({ id, old: input.old === true, actor });
      await announce(id);
      return withOrganization(key ?? noKey(id));
    },
  };
}

function filterOf({ state, unusedFor }: KeyFilter) {
  return {
    state: parse.isAbsent(state) ? undefined : parse.choice(state, keyStates, "state"),
    unusedFor_ms: parse.isAbsent(unusedFor) ? undefined : parse.duration(unusedFor, "duration"),
  };
}

const day_ms = 86_400_000;

/** An expiry that would never count, and whoever sets it means something else. */
function livesNoLonger(
  expiresAt: Date | null | undefined,
  { slug, keyLifetimeMaxDays }: Organization,
  from_ms: number,
) {
  if (!expiresAt || keyLifetimeMaxDays === null) return;
  const last = new Date(from_ms + keyLifetimeMaxDays * day_ms);
  if (expiresAt > last)
    fail(
      `Keys of ${slug} work for ${keyLifetimeMaxDays} days at most from when they are made or rotated. Choose an expiry until ${last.toISOString()}, or none.`,
    );
}

function cannotRotate(id: string, why: string): string {
  return `The key ${id} ${why} and cannot be rotated. Create a new one.`;
}
