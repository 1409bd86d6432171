/** What an administrator does with keys. A new secret is in the answer once and nowhere else. */
import { idOf } from "../store/ids.ts";
import { type Acting, noKey, type OwnedKey, refuse } from "./acting.ts";
import { key_random_bytes, newKey, secretOf } from "./key.ts";
import * as wish from "./wish.ts";

export interface KeyVerbs {
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
}

export interface NewKey extends OwnedKey {
  /** The whole key, in the clear: the only time that it is seen. */
  secret: string;
}

export function keyVerbs(acting: Acting): KeyVerbs {
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

function cannotRotate(id: string, why: string): string {
  return `The key ${id} ${why} and cannot be rotated. Create a new one.`;
}
