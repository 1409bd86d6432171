/**
 * Stands in for the database while a node warms up (docs/design/runtime.md, Warming up). It knows one caller, grants
 * everything, and keeps nothing. Its answers have the shapes of those of `stores/postgres`, because the compiler
 * optimizes for shapes.
 */
import { Fault } from "../core/inference/fault.ts";
import { costOf } from "../core/inference/money.ts";
import type { Credential } from "../core/store/directory.ts";
import { idOf } from "../core/store/ids.ts";
import type { Admit, AdmitAnswer, Command, Ledger, LedgerAnswer, WindowKind } from "../core/store/ledger.ts";
import { yieldToEventLoop } from "../core/time/turns.ts";
import type { CountingWorkers } from "../features/tokenizers/counter.ts";

/** Grants a batch after a turn of the event loop, so that further commands gather in the next batch. */
export const grantAll: Ledger["run"] = async (commands) => {
  await yieldToEventLoop();
  return commands.map(answerTo);
};

/**
 * Counts no tokens. A node with the embedded database serves while it warms up. To count, its threads would load their
 * vocabularies, which costs 0.7 seconds of CPU and would be of no use.
 */
export const countsNothing: Pick<CountingWorkers, "examine"> = {
  examine: async () => {
    throw new Fault("overloaded", "While a node warms up, nothing is counted.");
  },
};

function answerTo(command: Command): LedgerAnswer {
  switch (command.verb) {
    case "admit":
      return granted(command);
    case "grow":
      return { answer: "granted", nanos: command.nanosTotal };
    case "checkpoint":
      return { answer: "extended" };
    case "settle":
      return { answer: "settled", charged: command.nanos, uncharged: 0 };
  }
}

function granted({ inputNanos, outputTokens, prices, limits }: Admit): AdmitAnswer {
  const at = new Date();
  const nanos = inputNanos + costOf(outputTokens, prices.output);
  const resetAt = new Date(at.getTime() + hour_ms);
  const reading = (kind: WindowKind) => ({ kind, limit: limits[kind], used: 0, held: nanos, startsAt: at, resetAt });
  const windows = { session: reading("session"), week: reading("week"), month: reading("month") };
  return { answer: "granted", nanos, outputTokens, source: "plan", windows, at };
}

const hour_ms = 3_600_000;

export function callerOn(plan: string): Credential {
  const readAt = new Date();
  const newId = () => Bun.randomUUIDv7();
  return {
    key: {
      id: idOf(newId(), "key_"),
      name: "",
      scopes: ["inference:create"],
      models: null,
      allowFrom: null,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    },
    secret: { createdAt: readAt, expiresAt: null, revokedAt: null },
    ends: { lifetimeAt: null, unusedAt: null },
    person: null,
    organization: {
      id: idOf(newId(), "org_"),
      slug: "warm-up",
      name: "",
      status: "active",
      plan,
      keepsContent: true,
    },
    names: { team: null, person: null },
    overPlan: { own: noRates, raise: noRates },
    rates: [],
    readAt,
  };
}

const noRates = { requestsPerMinute: null, tokensPerMinute: null };
