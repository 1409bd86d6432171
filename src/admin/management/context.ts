/** The context of a verb of management: the stores, the actor, look-ups by name, and announcements to the nodes. */

import { hashKey } from "../../core/auth/credential.ts";
import type { Currency } from "../../core/inference/money.ts";
import type { Actor } from "../../core/store/directory.ts";
import type { Fleet } from "../../core/store/fleet.ts";
import type { Plan } from "../../core/store/plan.ts";
import type { RefusedRequests } from "../../core/store/refused.ts";
import type { Upstream } from "../../core/upstream/target.ts";
import type { Standings } from "../../features/telemetry/store/standing.ts";
import type { Books } from "../../features/upkeep/store/books.ts";
import type { Administration } from "../store/administration.ts";
import { canonical } from "../store/audit-chain.ts";
import type { Calendar } from "../store/calendar.ts";
import type { DrainAdministration } from "../store/drain.ts";
import type { InvitationAdministration } from "../store/invitations.ts";
import type { StoredKey } from "../store/key.ts";
import type { LedgerAdministration } from "../store/ledger.ts";
import type { LimitRequestAdministration } from "../store/limit-requests.ts";
import type { NoticeAdministration } from "../store/notices.ts";
import type { OperatorAdministration } from "../store/operators.ts";
import type { Organization } from "../store/organization.ts";
import type { Repeat } from "../store/page.ts";
import type { PeopleAdministration } from "../store/people.ts";
import type { PlanAdministration } from "../store/plan.ts";
import type { RequestList } from "../store/request-list.ts";
import type { UpstreamReports } from "../store/upstream-report.ts";
import type { ShownConfiguration } from "./configuration-shape.ts";
import { fail } from "./error.ts";
import type { NearOrganization } from "./fleet-shape.ts";
import { type KeyAct, refuseByKind } from "./key-kinds.ts";
import { nearestOrganizations } from "./nearest.ts";
import * as parse from "./parse.ts";

/** The data of the catalog in force that verbs need. */
export interface ManagedCatalog {
  plans: ReadonlyMap<string, Plan>;
  /** The public ids of the models. */
  models: readonly string[];
  /** The model's public id, by alias. Absent: there are no aliases. */
  aliases?: ReadonlyMap<string, string> | undefined;
  upstreams: readonly string[];
  /** Names of the upstreams with `resolve`, each of whose addresses is an engine of its own. Absent: there are none. */
  resolved?: readonly string[] | undefined;
  /** The calendar that a new organization gets by default. Absent or null: it gets none. */
  calendar?: Calendar | null | undefined;
  billing: Billing;
}

/** The upstream names of a configuration, each once: the engines of one `replicas` list share a name. */
export function upstreamNames(engines: readonly Pick<Upstream, "name" | "resolve">[]) {
  const named = (some: typeof engines) => [...new Set(some.map(({ name }) => name))];
  return { upstreams: named(engines), resolved: named(engines.filter(({ resolve }) => resolve)) };
}

/** The currency of every amount, and the name of the provider, which FOCUS reports require. */
export interface Billing {
  currency: Currency;
  provider: string;
}

/** Links that open this node's console in a browser on the node's own machine. */
export interface ConsoleLinking {
  link(actor: Actor): Promise<{ url: string; expiresAt: Date }>;
}

export interface ManagementStores {
  administration: Administration;
  ledger: LedgerAdministration & Pick<Books, "check">;
  refused: Pick<RefusedRequests, "find">;
  standings: Pick<Standings, "standings" | "nearest">;
  requests: RequestList;
  upstreamReports: UpstreamReports;
  operators: OperatorAdministration;
  plans: PlanAdministration;
  notices: NoticeAdministration;
  drains: DrainAdministration;
  fleet: Fleet;
  people: PeopleAdministration;
  limitRequests: LimitRequestAdministration;
  invitations: InvitationAdministration;
}

export interface ManagementOptions extends ManagementStores {
  /** Reads the catalog in force. Only verbs that need the catalog call this. */
  catalog: () => ManagedCatalog | Promise<ManagedCatalog>;
  /**
   * Reads the organizations nearest to a limit; several callers may share one result. Absent: each call reads the
   * store.
   */
  nearest?: (() => Promise<NearOrganization[]>) | undefined;
  /** The configuration in force, without secrets. Absent: this process has none. */
  configuration?: () => ShownConfiguration | Promise<ShownConfiguration>;
  /**
   * Makes links that open the console. Null or absent: the actor is not on the machine of a node that makes such links.
   */
  console?: ConsoleLinking | null;
  /** The actor, as in the audit log: `operator:<name>`, `cli:<user>` or `service`. */
  actor: Actor;
  /** The only organization that the actor sees; null or absent: the actor sees all organizations. */
  within?: string | null | undefined;
  /** The only person whose data the actor sees, within the actor's organization; null or absent: everybody's. */
  person?: string | null | undefined;
  /** The idempotency key that the caller sent with a creation. */
  repeatKey?: string | null | undefined;
  now_ms: () => number;
  /** Makes a UUIDv7, with dashes. */
  newUuid: () => string;
  /** Bytes from a cryptographic source. */
  random: (bytes: number) => Uint8Array;
  /**
   * Informs this process that a key, an organization or a person has changed; the database informs the other nodes. A
   * failure is harmless, because caches expire after a second.
   */
  changed?: ((id: string) => void | Promise<void>) | undefined;
}

interface Owning {
  organizationId: string;
}

export type ManagementContext = ReturnType<typeof managementContext>;

export function managementContext(options: ManagementOptions) {
  const { administration, within = null, person = null } = options;
  let known: Currency | null = null;
  /** Finds the organization that a verb names. One that the actor does not see counts as missing. */
  async function organizationOf(name: string): Promise<Organization> {
    const found = await administration.findOrganization(name);
    if (found && isWithin(within, found.id)) return found;
    const renamed = found ? null : await administration.formerOwner(name);
    return noOrganization(name, renamed && isWithin(within, renamed.id) ? renamed : null);
  }
  async function keyOf(name: string): Promise<StoredKey> {
    if (name.startsWith("slk_")) fail("That is the API key itself. Specify its ID instead, which begins with 'key_'.");
    const found = await administration.findKey(name);
    return found && isWithin(within, found.organizationId) && isOwn(person, found.personId) ? found : noKey(name);
  }
  /** Adds to each item the slug of the organization that owns the item. */
  async function withSlugs<Owned extends Owning>(all: readonly Owned[]): Promise<(Owned & { organization: string })[]> {
    const slugs = new Map<string, string>();
    for (const { organizationId } of all) {
      if (slugs.has(organizationId)) continue;
      const found = await administration.findOrganization(organizationId);
      if (!found) throw new Error(`the organization ${organizationId} is gone`);
      slugs.set(organizationId, found.slug);
    }
    return all.map((one) => ({ ...one, organization: slugs.get(one.organizationId)! }));
  }
  return {
    ...options,
    within,
    person,
    nearest: options.nearest ?? (() => nearestOrganizations(options)),
    /** The currency in which the service counts. The currency of a database never changes, so it is read once. */
    async currency(): Promise<Currency> {
      known ??= (await options.catalog()).billing.currency;
      return known;
    },
    /** The only domains to which the service sends mail; an empty list: all domains; null: it sends no mail. */
    mailDomains: async () => (await options.configuration?.())?.smtp?.recipientDomains ?? null,
    organizationOf,
    /** Finds an organization in which something is to be created or changed, and refuses a closed organization. */
    async openOrganization(slugOrId: string): Promise<Organization> {
      const found = await organizationOf(slugOrId);
      return found.status === "closed" ? isClosed(found.slug) : found;
    },
    /** The calendar that a new organization gets by default. */
    calendar: async () => (await options.catalog()).calendar ?? null,
    async knownPlan(name: string): Promise<string> {
      const plans = [...(await options.catalog()).plans.keys()];
      if (plans.includes(name)) return name;
      if (plans.length === 0) fail("The catalog has no plans. Add one under 'plans:' in sluice.yaml.");
      return fail(`There is no plan '${parse.excerpt(name)}'. The catalog has: ${plans.join(", ")}.`);
    },
    /** The organization to which a list is limited: the named organization, or the only one that the actor sees. */
    async narrowedTo(slugOrId: string | undefined): Promise<string | undefined> {
      if (slugOrId !== undefined) return (await organizationOf(slugOrId)).id;
      return within ?? undefined;
    },
    isInSight: (organizationId: string | null) => isWithin(within, organizationId),
    /**
     * The identity by which the store recognises a repeated creation; undefined if the request has no idempotency key.
     */
    repeatOf(verb: string, input: unknown): Repeat | undefined {
      const { repeatKey } = options;
      if (repeatKey === null || repeatKey === undefined) return undefined;
      return { keyHash: hashKey(repeatKey), requestHash: hashKey(canonical([verb, input])) };
    },
    /** The key with this ID. Refuses a key whose kind does not allow the act. */
    async keyFor(name: string, act: KeyAct): Promise<StoredKey> {
      const found = await keyOf(name);
      refuseByKind(found, act);
      return found;
    },
    keyOf,
    withSlugs,
    async announce(id: string): Promise<void> {
      try {
        await options.changed?.(id);
      } catch {
        // The change is stored; a node that was not informed sees it within a second.
      }
    },
  };
}

function isOwn(person: string | null, owner: string | null): boolean {
  return person === null || person === owner;
}

function isWithin(within: string | null, organizationId: string | null): boolean {
  return within === null || within === organizationId;
}

/** Refuses a name that no organization has. `renamed` is the organization that had this slug before. */
export function noOrganization(slugOrId: string, renamed: Organization | null = null): never {
  const next = renamed ? `It was renamed to '${renamed.slug}'.` : "To list all organizations, run: sluice org list";
  return fail(`There is no organization '${parse.excerpt(slugOrId)}'. ${next}`, "resource_not_found");
}

export function isClosed(slug: string): never {
  return fail(`Organization '${slug}' is closed, and cannot be changed any more.`, "wrong_state");
}

export function noKey(id: string): never {
  return parse.missing("key", id, " keys", "key list");
}

/** Refuses an act after which nobody could administer the service. */
export function lastAdministrator(): never {
  return fail(
    "Nobody could administer any more: no person with the role admin, and no operator with it and without an expiry. First make another admin.",
    "wrong_state",
  );
}

export function reusedKey(): never {
  return fail(
    "This Idempotency-Key came with another request before. Use a new one for each creation.",
    "idempotency_key_reused",
  );
}
