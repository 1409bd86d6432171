// The stores of the verbs, in memory: only as much of them as the actions on limits, teams, memberships, keys and raises
// need.

import type { ManagementStores } from "../../../../src/admin/management/context.ts";
import type { Administration } from "../../../../src/admin/store/administration.ts";
import type { Organization } from "../../../../src/admin/store/organization.ts";
import { audit } from "./acts.ts";
import { keys } from "./keys.ts";
import { limits } from "./limits.ts";
import type { MemoryDatabase } from "./memory.ts";
import { people } from "./people.ts";
import { teams } from "./teams.ts";

/** The database that each kind of action uses; for actions on a person's limits it depends on the person. */
export type Databases = Record<"teams" | "limits" | "keys" | "people", MemoryDatabase> & {
  /** The database for acts on the limits of this person. */
  actingOn(person: string): MemoryDatabase;
};

export function memoryStores(of: Databases): ManagementStores {
  const limited = { ...teams(of.teams), ...keys(of.keys), ...limits(of.limits, of.actingOn) };
  const administration = { ...organizations(of.limits), ...limited };
  return {
    administration: partly<Administration>(administration),
    people: partly<ManagementStores["people"]>(people(of.people)),
    standings: { standings: async () => new Map(), nearest: async () => [] },
    ledger: partly({}),
    refused: partly({}),
    requests: partly({}),
    upstreamReports: partly({}),
    operators: partly({}),
    plans: partly({}),
    notices: partly({}),
    drains: partly({}),
    fleet: partly({}),
    limitRequests: partly({}),
    invitations: partly({}),
  };
}

type Verbs = "createOrganization" | "findOrganization" | "formerOwner" | "setOrganizationPlan" | "listAudit";

function organizations(db: MemoryDatabase): Pick<Administration, Verbs> {
  const { memory } = db;
  return {
    createOrganization: ({ id, slug, name, plan }) =>
      db.transaction(async (tx) => {
        const made: Organization = { ...blank, id, slug, name, plan, anchorAt: tx.now, createdAt: tx.now };
        tx.set("organizations", id, made);
        return made;
      }),

    async findOrganization(name) {
      await memory.scheduler.turn();
      return memory.get("organizations", name) ?? memory.all("organizations").find(({ slug }) => slug === name) ?? null;
    },

    formerOwner: async () => null,

    setOrganizationPlan: (id, plan, _, version) =>
      db.transaction(async (tx) => {
        await tx.lock(id);
        const row = tx.get("organizations", id);
        if (!row) return null;
        if (typeof version === "number" && row.version !== version) return { stale: row };
        if (row.status === "closed") return "closed";
        if (row.plan === plan) return row;
        tx.set("organizations", id, { ...row, plan, version: row.version + 1 });
        await audit(tx);
        return tx.get("organizations", id)!;
      }),

    listAudit: async () => [],
  };
}

const blank = {
  formerSlugs: [],
  status: "active",
  nextAnchor: null,
  calendar: null,
  nextCalendar: null,
  extraUsage: { enabled: false, capNanos: null },
  keyLifetimeMaxDays: null,
  keyUnusedMaxDays: null,
  keepsContent: true,
  closedAt: null,
  version: 1,
} as const satisfies Partial<Organization>;

/**
 * A store with only the functions that the actions use. If an action asks for another function, that is a mistake of
 * the history.
 */
function partly<Store extends object>(has: Partial<Store>): Store {
  return new Proxy(has as Store, {
    get(store, name) {
      if (name in store) return store[name as keyof Store];
      throw new Error(`the stores in memory have no '${String(name)}'`);
    },
  });
}
