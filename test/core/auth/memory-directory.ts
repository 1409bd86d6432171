/**
 * `Directory` and `Administration` in memory, with a clock that a test moves: exactly the rules of
 * src/core/store/directory.ts.
 */

import type { Administration, AuditEntry } from "../../../src/admin/store/administration.ts";
import { chainBeginning, chainedHash } from "../../../src/admin/store/audit-chain.ts";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { StoredKey } from "../../../src/admin/store/key.ts";
import type { Organization } from "../../../src/admin/store/organization.ts";
import type { Page, PageOf } from "../../../src/admin/store/page.ts";
import { type Credential, type Directory, useNoted_ms } from "../../../src/core/store/directory.ts";
import { memoryBudgets } from "./memory-budgets.ts";

const day_ms = 86_400_000;

export interface MemoryDirectory extends Directory, Administration {
  clock: { now_ms: number };
}

export function memoryDirectory(now_ms = Date.UTC(2026, 10, 21, 3)): MemoryDirectory {
  const clock = { now_ms };
  const organizations = new Map<string, Organization>();
  const keys = new Map<string, StoredKey>();
  const hashes = new Map<string, { keyId: string; secret: StoredKey["secrets"][number] }>();
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
  ): Organization | "closed" | null {
    const organization = organizations.get(id);
    if (!organization) return null;
    if (organization.status === "closed") return "closed";
    change(organization);
    organization.version++;
    note(actor, action, id, id);
    return structuredClone(organization);
  }
  const isTaken = (slug: string, id?: string) =>
    [...organizations.values()].some((one) => one.id !== id && [one.slug, ...one.formerSlugs].includes(slug));
  function endsOf(
    { lastUsedAt }: StoredKey,
    { createdAt }: Pick<StoredKey["secrets"][number], "createdAt">,
    { keyLifetimeMaxDays, keyUnusedMaxDays }: Organization,
  ): Credential["ends"] {
    const used = Math.max(createdAt.getTime(), lastUsedAt?.getTime() ?? 0);
    return {
      lifetimeAt: keyLifetimeMaxDays === null ? null : new Date(createdAt.getTime() + keyLifetimeMaxDays * day_ms),
      unusedAt: keyUnusedMaxDays === null ? null : new Date(used + keyUnusedMaxDays * day_ms + useNoted_ms),
    };
  }
  function seen(key: StoredKey): StoredKey {
    const { lifetimeAt, unusedAt } = endsOf(key, key.secrets[0]!, organizations.get(key.organizationId)!);
    const over = (...instants: (Date | null)[]) => instants.some((at) => at !== null && at <= now());
    const expired = over(key.expiresAt, lifetimeAt) ? "expired" : over(unusedAt) ? "unused" : "active";
    const all = [key.expiresAt, lifetimeAt, unusedAt].flatMap((at) => (at ? [at.getTime()] : []));
    const endsAt = key.revokedAt ?? (all.length === 0 ? null : new Date(Math.min(...all)));
    return structuredClone({ ...key, state: key.revokedAt ? "revoked" : expired, endsAt });
  }
  function addSecret(key: StoredKey, secret: { hash: Uint8Array; prefix: string; suffix: string }): void {
    const shown = { prefix: secret.prefix, suffix: secret.suffix, createdAt: now(), expiresAt: null, revokedAt: null };
    key.secrets.unshift(shown);
    hashes.set(secret.hash.toHex(), { keyId: key.id, secret: shown });
  }

  const budgets = memoryBudgets(now, (id) => organizations.get(id)?.slug ?? "");

  return {
    clock,
    ...budgets,
    async credential(hash): Promise<Credential | null> {
      const found = hashes.get(hash.toHex());
      if (!found) return null;
      const key = keys.get(found.keyId)!;
      const organization = organizations.get(key.organizationId)!;
      const ends = endsOf(key, found.secret, organization);
      return structuredClone({ key, secret: found.secret, ends, person: null, organization, rates: [], readAt: now() });
    },
    async touch(uses) {
      for (const [id, from] of uses) Object.assign(keys.get(id)!, { lastUsedAt: now(), lastUsedFrom: from });
    },
    async createOrganization({ id, slug, name, plan, actor }) {
      if (isTaken(slug)) return "slug_taken";
      const extraUsage = { enabled: false, capNanos: null };
      const organization: Organization = {
        ...{ id, slug, formerSlugs: [], name, status: "active", plan, extraUsage, createdAt: now(), closedAt: null },
        ...{ keyLifetimeMaxDays: null, keyUnusedMaxDays: null, keepsContent: true },
        ...{ anchorAt: now(), nextAnchor: null, calendar: null, nextCalendar: null, version: 1 },
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
    async formerOwner(slug) {
      return structuredClone([...organizations.values()].find((one) => one.formerSlugs.includes(slug)) ?? null);
    },
    async renameOrganization(id, names, actor) {
      if (names.slug !== undefined && isTaken(names.slug, id)) return "slug_taken";
      return changed(id, actor, "organization.rename", (one) => {
        if (names.slug !== undefined && names.slug !== one.slug) one.formerSlugs.push(one.slug);
        Object.assign(one, names);
      });
    },
    setPolicies: async (id, policies, actor) =>
      changed(id, actor, "organization.policies", (one) => Object.assign(one, policies)),
    closeOrganization: async (id, actor) =>
      changed(id, actor, "organization.close", (one) => {
        Object.assign(one, { status: "closed", closedAt: now(), plan: null });
        for (const key of keys.values()) if (key.organizationId === id) key.revokedAt ??= now();
      }),
    async purgeContent() {},
    setOrganizationStatus: async (id, status, actor) =>
      changed(id, actor, `organization.${status === "active" ? "resume" : "suspend"}`, (one) => {
        one.status = status;
      }),
    setOrganizationPlan: async (id, plan, actor) =>
      changed(id, actor, "organization.plan", (one) => {
        one.plan = plan;
      }),
    setOrganizationCalendar: async (id, calendarAfter, actor) =>
      changed(id, actor, "organization.calendar", (one) => {
        one.calendar = calendarAfter(one.calendar);
      }),
    knownZone: async (name) => name,
    zones: async () => [],
    spanIn: async () => ({ from: now(), to: now(), hasFullHours: true }),
    setOrganizationAnchor: async (id, anchorAt, actor) =>
      changed(id, actor, "organization.anchor", (one) => {
        one.nextAnchor = { anchorAt, countsFrom: new Date(clock.now_ms + 30 * 86_400_000) };
      }),
    setExtraUsage: async (id, extra, actor) =>
      changed(id, actor, "organization.extra_usage", ({ extraUsage }) => {
        extraUsage.enabled = extra.enabled;
        if (extra.enabled) extraUsage.capNanos = extra.capNanos;
      }),
    async adjustUsage({ organizationId, entries, nanos, reason, actor }) {
      for (const { entryId, kind } of entries)
        note(actor, "usage.adjust", organizationId, entryId, { window: kind, nanos, added: nanos, reason });
      return entries.map((entry) => ({ ...entry, added: nanos }));
    },
    async createKey({ id, organizationId, name, scopes, models, expiresAt, secret, actor, ...input }) {
      if (organizations.get(organizationId)?.status === "closed") return "closed";
      const life = { createdAt: now(), expiresAt, revokedAt: null, lastUsedAt: null, lastUsedFrom: null };
      const { owner, labels, allowFrom, personId = null } = input;
      const open = { kind: "key" as const, createdBy: actor, owner, personId, labels, allowFrom, version: 1 };
      const read = {
        state: "active",
        endsAt: null,
        team: null,
        person: null,
        limits: { ...noBudget },
        organization: organizations.get(organizationId)?.slug ?? "",
      } as const;
      const key: StoredKey = { id, organizationId, name, scopes, models, ...life, ...open, ...read, secrets: [] };
      addSecret(key, secret);
      keys.set(id, key);
      note(actor, "key.create", organizationId, id);
      return seen(key);
    },
    async pageKeys({ organizationId, state, unusedFor_ms = 0, endsWithin_ms, ...page }) {
      const found = [...keys.values()]
        .map(seen)
        .filter(
          (key) =>
            (!organizationId || key.organizationId === organizationId) &&
            (!state || key.state === state) &&
            clock.now_ms - (key.lastUsedAt ?? key.createdAt).getTime() >= unusedFor_ms &&
            (endsWithin_ms === undefined ||
              (key.state === "active" && (key.endsAt?.getTime() ?? Infinity) - clock.now_ms <= endsWithin_ms)),
        );
      return part(found, page);
    },
    async updateKey({ id, actor }, patch) {
      const key = keys.get(id);
      if (!key) return null;
      const { teamId, ...change } = patch(key);
      const team = teamId === undefined ? key.team : teamId && (await budgets.findTeam(teamId));
      Object.assign(key, change, { team: team && { id: team.id, name: team.name }, version: key.version + 1 });
      note(actor, "key.update", key.organizationId, id);
      return seen(key);
    },
    async findKey(id) {
      const key = keys.get(id);
      return key ? seen(key) : null;
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
      key.version++;
      note(actor, "key.rotate", key.organizationId, id);
      return seen(key);
    },
    async revokeKey({ id, old, actor }) {
      const key = keys.get(id);
      if (!key) return null;
      if (old) for (const secret of key.secrets.slice(1)) secret.revokedAt ??= now();
      else key.revokedAt ??= now();
      note(actor, old ? "key.revoke_old" : "key.revoke", key.organizationId, id);
      return seen(key);
    },
    async listAudit({ organizationId, limit }) {
      const wanted = audit.filter((entry) => !organizationId || entry.organizationId === organizationId);
      const unnamed = { actorName: null, subjectName: null, organization: null, names: {} };
      return structuredClone(wanted.slice(0, limit).map((entry) => ({ ...entry, ...unnamed })));
    },
    async search({ text, kinds, limit }) {
      const wanted = text.toLowerCase();
      const found = [...keys.values()].filter(({ name }) => name.toLowerCase().includes(wanted));
      const all = found.map(({ id, name, organization, owner }) => ({ id, name, organization, detail: owner }));
      return kinds.includes("key")
        ? all.slice(0, limit).map((one) => ({ kind: "key" as const, rank: 2 as const, ...one }))
        : [];
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
