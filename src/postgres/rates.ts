/**
 * Sliding rates in the database, for nodes that share one and have no Redis, or whose Redis is away: one call of
 * `usage_rates` (migration 0006) for all that came while the last one was under way. Every call is sent at most once.
 */
import { bare } from "../store/ids.ts";
import {
  countedSingly,
  hopelessLimit,
  type RateAnswer,
  type RateCount,
  type RateRequest,
  type Rates,
  readingsOf,
  refusalOf,
} from "../store/rates.ts";
import { compositeArray } from "./composite.ts";
import { answeredWithin, type Database } from "./database.ts";

export interface PostgresRatesOptions {
  /** An answer that takes longer is none. */
  answer_ms?: number;
}

interface Waiting {
  /** Bare. */
  owner: string;
  request: RateRequest;
  answered(answer: RateAnswer): void;
  failed(error: unknown): void;
}
interface Change {
  /** Bare. */
  owner: string;
  countsUntil: Date;
  entry: string;
  requests: number;
  tokens: number;
  done(): void;
}
interface CountRow {
  position: number;
  taken: boolean;
  counts_until: Date;
  entry: string;
  tokens_taken: number;
  requests: number;
  tokens: number;
  reset_ms: number;
  requests_retry_ms: number | null;
  tokens_retry_ms: number | null;
}

const call = "select * from usage_rates($1::usage_rate_take[], $2::usage_rate_change[])";
const call_rows_max = 500;

export function postgresRates(db: Pick<Database, "query">, options: PostgresRatesOptions = {}): Rates {
  const { answer_ms = 3_000 } = options;
  const takes: Waiting[] = [];
  const changes: Change[] = [];
  let underway: Promise<void> | null = null;

  /** One call at a time; what comes meanwhile goes together in the next. */
  function start(): void {
    underway ??= (async () => {
      await Promise.resolve();
      while (takes.length + changes.length > 0)
        await send(takes.splice(0, call_rows_max), changes.splice(0, call_rows_max));
      underway = null;
    })();
  }

  async function send(some: Waiting[], told: Change[]): Promise<void> {
    try {
      const parameters = [compositeArray(some.map(takeRow)), compositeArray(told.map(changeRow))];
      const rows = await answeredWithin(db.query<CountRow>(call, parameters), answer_ms, "the count of rates");
      for (const row of rows) some[row.position]!.answered(answerOf(some[row.position]!, row));
    } catch (error) {
      for (const one of some) one.failed(error);
    }
    for (const change of told) change.done();
  }

  function answerOf({ owner, request: { limits } }: Waiting, row: CountRow): RateAnswer {
    const count: RateCount = {
      taken: row.taken,
      requests: row.requests,
      tokens: row.tokens,
      reset_ms: row.reset_ms,
      requestsRetry_ms: row.requests_retry_ms ?? row.reset_ms,
      tokensRetry_ms: row.tokens_retry_ms ?? row.reset_ms,
    };
    if (!count.taken) return refusalOf(count, limits);
    const change = (requests: number, more: number) =>
      new Promise<void>((done) => {
        changes.push({ owner, countsUntil: row.counts_until, entry: row.entry, requests, tokens: more, done });
        start();
      });
    return {
      answer: "taken",
      readings: readingsOf(count, limits),
      giveBack: () => change(-1, -row.tokens_taken),
      correct: (actual) => change(0, actual - row.tokens_taken),
    };
  }

  return {
    take(request) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return Promise.resolve({ answer: "never", limit: hopeless });
      return new Promise<RateAnswer>((answered, failed) => {
        takes.push({ owner: bare(request.organizationId, "org_"), request, answered, failed });
        start();
      });
    },
    async close() {
      await underway;
    },
  };
}

function takeRow({ owner, request }: Waiting, position: number) {
  const { requestId, tokens, tokens_min, limits, elsewhere_ms } = request;
  return [
    position,
    owner,
    requestId,
    countedSingly(limits),
    tokens,
    tokens_min,
    limits.requestsPerMinute,
    limits.tokensPerMinute,
    elsewhere_ms === undefined ? null : Math.max(0, Math.round(elsewhere_ms)),
  ];
}

function changeRow({ owner, countsUntil, entry, requests, tokens }: Change) {
  return [owner, countsUntil.toISOString(), entry, requests, tokens];
}
