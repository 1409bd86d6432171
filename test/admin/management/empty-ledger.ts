/**
 * A ledger without usage and a service without operators, for tests of other parts. `overrides` replaces single
 * methods.
 */
import { type ManagementStores, managementContext } from "../../../src/admin/management/context.ts";
import type { UsageReading } from "../../../src/admin/store/ledger.ts";
import { totalOf } from "../../../src/admin/store/report.ts";
import type { UpstreamMeasures } from "../../../src/admin/store/upstream-report.ts";
import type { WindowKind } from "../../../src/core/store/ledger.ts";
import { noLimits, type Plan } from "../../../src/core/store/plan.ts";
import type { MemoryDirectory } from "../../core/auth/memory-directory.ts";

type Stores = Omit<ManagementStores, "administration">;

export function emptyLedger(overrides: Partial<Stores["ledger"]> = {}): Stores {
  return {
    ledger: {
      reading: async (_organization, limits) => ({ ...emptyReading, windows: windowsWith(limits) }),
      check: async () => [],
      sealed: async () => ({ windows: 0, records: 0, days: 0, dayRecords: 0 }),
      lost: async () => ({ receipts: 0, nanos: 0, noticedAt: null, movedAt: null }),
      now: async () => at,
      report: async () => ({
        at,
        rows: [],
        total: totalOf([]),
        rowsLeftOut: 0,
        running: { requests: 0, heldNanos: 0n },
      }),
      receiptOfAny: async () => null,
      ...overrides,
    },
    refused: { find: async () => null },
    standings: { standings: async () => new Map(), nearest: async () => [] },
    requests: { listRequests: async () => ({ items: [], next: null }) },
    upstreamReports: {
      reportUpstreams: async () => ({
        at,
        total: nothingMeasured,
        hours: [],
        upstreams: [],
        failures: [],
        followed: [],
      }),
    },
    notices: {
      canSeal: false,
      pageDestinations: async () => ({ items: [], hasMore: false }),
      findDestination: async () => null,
      setDestination: () => Promise.reject(new Error("no webhooks")),
      removeDestination: async () => null,
      addTest: () => Promise.reject(new Error("no webhooks")),
      outcome: async () => null,
    },
    drains: {
      listDrains: async () => [],
      drain: async (engine, until, actor) => ({ ...engine, drainedAt: at, until, actor }),
      resume: async () => [],
    },
    fleet: { listProcesses: async () => [] },
    invitations: {
      createInvitation: async () => "already",
      findInvitation: async () => null,
      pageInvitations: async () => ({ items: [], hasMore: false }),
      revokeInvitation: async () => null,
    },
    limitRequests: {
      openLimitRequest: async () => "already",
      findLimitRequest: async () => null,
      pageLimitRequests: async () => ({ items: [], hasMore: false }),
      approveLimitRequest: async () => "gone",
      closeLimitRequest: async () => "gone",
    },
    people: {
      findPerson: async () => null,
      wasIn: async () => false,
      pagePeople: async () => ({ items: [], hasMore: false }),
      suspendPerson: async () => null,
      resumePerson: async () => null,
      forgetPerson: async () => null,
      giveMembership: async () => null,
      takeMembership: async () => null,
    },
    plans: {
      listPlans: async () => [],
      createPlan: async ({ name: _ }) => "reused",
      updatePlan: async () => null,
      removePlan: async () => null,
    },
    operators: {
      operatorOf: async () => null,
      createOperator: async () => "name_taken",
      pageOperators: async () => ({ items: [], hasMore: false }),
      findOperator: async () => null,
      rotateOperator: async () => null,
      revokeOperator: async () => null,
    },
  };
}

const at = new Date("2026-11-21T03:00:00.000Z");

function windowsWith(limits: Record<WindowKind, number | null>): UsageReading["windows"] {
  const window = <Kind extends WindowKind>(kind: Kind, hours: number) => ({
    ...{ kind, limit: limits[kind], used: 0, held: 0 },
    startsAt: at,
    resetAt: new Date(at.getTime() + hours * 3_600_000),
  });
  return { session: window("session", 5), week: window("week", 168), month: window("month", 720) };
}

const nothingMeasured: UpstreamMeasures = {
  requests: 0,
  failed: 0,
  cancelled: 0,
  firstPartP50_ms: null,
  firstPartP95_ms: null,
  durationP50_ms: null,
  durationP95_ms: null,
};

const emptyReading: UsageReading = {
  windows: windowsWith({ session: null, week: null, month: null }),
  extra: { enabled: false, capNanos: null, used: 0, held: 0 },
  running: 0,
  concurrentRequests: null,
  at,
};

/** The context in which verbs run, over a directory in memory and without usage. */
export function memoryContext(directory: MemoryDirectory, overrides: Partial<Parameters<typeof managementContext>[0]>) {
  return managementContext({
    administration: directory,
    ...emptyLedger(),
    catalog: () => ({
      plans: plansNamed("starter", "pro"),
      models: ["acme/writer-1", "acme/painter-1"],
      upstreams: ["gpu-1"],
      billing: { currency: "USD", provider: "Sluice" },
    }),
    actor: "cli:test",
    now_ms: () => directory.clock.now_ms,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    ...overrides,
  });
}

/** Plans with these names and without limits. */
export function plansNamed(...names: string[]): Map<string, Plan> {
  return new Map(names.map((name) => [name, { ...noLimits, name }]));
}
