/** Directory and Administration over maps, with a clock that a test moves: the rules of src/store/directory.ts, nothing more. */
import { chainBeginning, chainedHash } from "../../src/store/audit-chain.ts";
import type {
  Administration,
  AuditEntry,
  Credential,
  Directory,
  Key,
  Organization,
} from "../../src/store/directory.ts";
import type { Page, PageOf } from "../../src/store/page.ts";
import { memoryBudgets } from "./memory-budgets.ts";

export interface MemoryDirectory extends Directory, Administration {
  clock: { now_ms: number };
}

export function memoryDirectory(now_ms = Date.UTC(2026, 10, 21, 3)): MemoryDirectory {
  const clock = { now_ms };
  const organizations = new Map<string, Organization>();
  const keys = new Map<string, Key>();
  const hashes = new Map<string, { keyId: string; secret: Key["secrets"][number] }>();
  const audit: AuditEntry[] = [];

  const head = () => audit[0] ?? { number: 0, hash: chainBeginning };
  const now = () => new Date(clock.now_ms);
  function note(actor: string, action: string, organizationId: string, subject: string, details = {}): void {
    const { number, hash: previous } = head();
    const entry = { number: number + 1, at: now(), actor, address: null, action, organizationId, subject, details };
    audit.unshift({ ...entry, hash: chainedHash(previous ?? chainBeginning, entry) });
  }
  function changed(
    id: string,
    actor: string,
    action: string,
    change: (organization: Organization) => void,
  ): Organization | null {
    const organization = organizations.get(id);
    if (!organization) return null;
    change(organization);
    organization.version++;
    note(actor, action, id, id);
    return structuredClone(organization);
  }
  function addSecret(key: Key, secret: { hash: Uint8Array; prefix: string; suffix: string }): void {
    const shown = { prefix: secret.prefix, suffix: secret.suffix, createdAt: now(), expiresAt: null, revokedAt: null };
    key.secrets.unshift(shown);
    hashes.set(secret.hash.toHex(), { keyId: key.id, secret: shown });
  }

  return {
    clock,
    ...memoryBudgets(now),
    async credential(hash): Promise<Credential | null> {
      const found = hashes.get(hash.toHex());
      if (!found) return null;
      const key = keys.get(found.keyId)!;
      const organization = organizations.get(key.organizationId)!;
      return structuredClone({ key, secret: found.secret, organization, rates: [], readAt: now() });
    },
    async touch(uses) {
      for (const [id, from] of uses) Object.assign(keys.get(id)!, { lastUsedAt: now(), lastUsedFrom: from });
    },
    async createOrganization({ id, slug, name, plan, actor }) {
      if ([...organizations.values()].some((one) => one.slug === slug)) return "slug_taken";
      const extraUsage = { enabled: false, capUnits: null };
      const organization: Organization = {
        ...{ id, slug, name, status: "active", plan, extraUsage, createdAt: now() },
        ...{ anchorAt: now(), nextAnchor: null, version: 1 },
      };
      organizations.set(id, organization);
      note(actor, "organization.create", id, id);
      return structuredClone(organization);
    },
    async listOrganizations() {
      return structuredClone([...organizations.values()]);
    },
    async pageOrganizations(page) {
      return part([...organizations.values()], page);
    },
    async findOrganization(slugOrId) {
      const found = [...organizations.values()].find((one) => one.slug === slugOrId || one.id === slugOrId);
      return structuredClone(found ?? null);
    },
    setOrganizationStatus: async (id, status, actor) =>
      changed(id, actor, `organization.${status === "active" ? "resume" : "suspend"}`, (one) => {
        one.status = status;
      }),
    setOrganizationPlan: async (id, plan, actor) =>
      changed(id, actor, "organization.plan", (one) => {
        one.plan = plan;
      }),
    setOrganizationAnchor: async (id, anchorAt, actor) =>
      changed(id, actor, "organization.anchor", (one) => {
        one.nextAnchor = { anchorAt, countsFrom: new Date(clock.now_ms + 30 * 86_400_000) };
      }),
    setExtraUsage: async (id, extra, actor) =>
      changed(id, actor, "organization.extra_usage", ({ extraUsage }) => {
        extraUsage.enabled = extra.enabled;
        if (extra.enabled) extraUsage.capUnits = extra.capUnits;
      }),
    async adjustUsage({ organizationId, entries, units, reason, actor }) {
      for (const { entryId, kind } of entries)
        note(actor, "usage.adjust", organizationId, entryId, { window: kind, units, added: units, reason });
      return entries.map((entry) => ({ ...entry, added: units }));
    },
    async createKey({ id, organizationId, name, scopes, allowedModels, expiresAt, secret, actor }) {
      const life = { createdAt: now(), expiresAt, revokedAt: null, lastUsedAt: null };
      const open = { lastUsedFrom: null, createdBy: actor, owner: null, labels: {}, allowedAddresses: null };
      const key: Key = { id, organizationId, name, scopes, allowedModels, ...life, ...open, secrets: [] };
      addSecret(key, secret);
      keys.set(id, key);
      note(actor, "key.create", organizationId, id);
      return structuredClone(key);
    },
    async pageKeys({ organizationId, state, unusedFor_ms = 0, ...page }) {
      const stateOf = ({ revokedAt, expiresAt }: Key) =>
        revokedAt ? "revoked" : expiresAt && expiresAt <= now() ? "expired" : "active";
      const found = [...keys.values()].filter(
        (key) =>
          (!organizationId || key.organizationId === organizationId) &&
          (!state || stateOf(key) === state) &&
          clock.now_ms - (key.lastUsedAt ?? key.createdAt).getTime() >= unusedFor_ms,
      );
      return part(found, page);
    },
    async updateKey(id, change, actor) {
      const key = keys.get(id);
      if (!key) return null;
      Object.assign(key, change);
      note(actor, "key.update", key.organizationId, id);
      return structuredClone(key);
    },
    async findKey(id) {
      return structuredClone(keys.get(id) ?? null);
    },
    async rotateKey({ id, secret, graceEndsAt, actor }) {
      const key = keys.get(id);
      if (!key) return null;
      if (key.revokedAt) return "revoked";
      for (const old of key.secrets) {
        if (old.revokedAt) continue;
        if (graceEndsAt && !(old.expiresAt && old.expiresAt < graceEndsAt)) old.expiresAt = graceEndsAt;
      }
      addSecret(key, secret);
      note(actor, "key.rotate", key.organizationId, id);
      return structuredClone(key);
    },
    async revokeKey({ id, old, actor }) {
      const key = keys.get(id);
      if (!key) return null;
      if (old) for (const secret of key.secrets.slice(1)) secret.revokedAt ??= now();
      else key.revokedAt ??= now();
      note(actor, old ? "key.revoke_old" : "key.revoke", key.organizationId, id);
      return structuredClone(key);
    },
    async listAudit({ organizationId, limit }) {
      const wanted = audit.filter((entry) => !organizationId || entry.organizationId === organizationId);
      return structuredClone(wanted.slice(0, limit));
    },
    async auditHead() {
      return { number: head().number, hash: head().hash ?? chainBeginning };
    },
  };
}

function part<Item extends { id: string }>(all: Item[], { after = "", limit }: Page): PageOf<Item> {
  const rest = all.filter(({ id }) => id > after);
  return structuredClone({ items: rest.slice(0, limit), hasMore: rest.length > limit });
}
