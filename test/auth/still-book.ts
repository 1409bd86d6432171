/** A ledger in which nothing has happened, for tests of other things; `happened` says what has. */
import type { ManagementOptions } from "../../src/auth/acting.ts";
import type { UsageReading, WindowKind } from "../../src/store/ledger.ts";
import { noLimits, type Plan } from "../../src/store/plan.ts";

type Book = Pick<ManagementOptions, "ledger" | "refused">;

export function stillBook(happened: Partial<Book["ledger"]> = {}): Book {
  return {
    ledger: {
      reading: async (_organization, limits) => ({ ...stillReading, windows: windowsWith(limits) }),
      check: async () => [],
      receiptOfAny: async () => null,
      ...happened,
    },
    refused: { find: async () => null },
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

const stillReading: UsageReading = {
  windows: windowsWith({ session: null, week: null, month: null }),
  extra: { enabled: false, capUnits: null, used: 0, held: 0 },
  running: 0,
  at,
};

/** Plans that limit nothing. */
export function plansNamed(...names: string[]): Map<string, Plan> {
  return new Map(names.map((name) => [name, { ...noLimits, name }]));
}
