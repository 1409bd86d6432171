/**
 * Sliding rates in the database, for nodes that share one and have no Redis, or whose Redis is away: one call of
 * `usage_rates` for all requests that came while the last call was under way. Corrections wait a
 * moment for a request, unless they take more: late, they would let too much in. Every call is sent at most once.
 */
import { bare } from "../../core/store/ids.ts";
import {
  countedSingly,
  hopelessLimit,
  type RateAnswer,
  type RateCount,
  type RateRequest,
  type RateSubject,
  type Rates,
  readingsOf,
  refusalOf,
  tightestOf,
} from "../../core/store/rates.ts";
import { modelLimitsPrefix, standingSubjects } from "../../core/store/standing.ts";
import { idleClock } from "../../core/time/clock.ts";
import { compositeArray, compositeRow, type Field, field } from "./composite.ts";
import { answeredWithin, type Database } from "./database.ts";

export interface PostgresRatesOptions {
  /** An answer after this time does not count. */
  answer_ms?: number;
  /** How long a correction waits for a request with which it is sent. */
  wait_ms?: number;
}

interface Waiting {
  request: RateRequest;
  claims: Claim[];
  answered(answer: RateAnswer): void;
  failed(error: unknown): void;
}
/** Ids are bare. */
interface Claim {
  organization: string;
  subject: string;
  limits: RateSubject["limits"];
}
interface Change {
  rows: Field[][];
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

const call = "select * from usage_rates($1::usage_rate_claim[], $2::usage_rate_correction[])";
const call_takes_max = 500;

export function postgresRates(db: Pick<Database, "query">, options: PostgresRatesOptions = {}): Rates {
  const { answer_ms = 3_000, wait_ms = 25 } = options;
  const takes: Waiting[] = [];
  const changes: Change[] = [];
  const clock = idleClock();
  let cancelWait: (() => void) | null = null;
  /** Changes are sent even if nothing is taken. */
  let areDue = false;
  let underway: Promise<void> | null = null;

  /** One call at a time; what arrives meanwhile is sent together in the next. */
  function start(): Promise<void> {
    underway ??= (async () => {
      await Promise.resolve();
      while (takes.length > 0 || (areDue && changes.length > 0)) {
        areDue = changes.length > call_takes_max;
        await send(takes.splice(0, call_takes_max), changes.splice(0, call_takes_max));
      }
      underway = null;
    })();
    return underway;
  }

  function flush(): Promise<void> {
    cancelWait?.();
    cancelWait = null;
    areDue = true;
    return start();
  }

  async function send(some: Waiting[], corrections: Change[]): Promise<void> {
    try {
      const claimed = some.flatMap(claimRows).map((row, position) => [position, ...row]);
      const parameters = [arrayOf(claimed), arrayOf(corrections.flatMap(({ rows }) => rows))];
      const rows = await answeredWithin(db.query<CountRow>(call, parameters), answer_ms, "the count of rates");
      rows.sort((one, other) => one.position - other.position);
      let from = 0;
      for (const waiting of some) {
        const to = from + waiting.claims.length;
        waiting.answered(answerOf(waiting, rows.slice(from, to)));
        from = to;
      }
    } catch (error) {
      for (const one of some) one.failed(error);
    }
    for (const change of corrections) change.done();
  }

  function answerOf({ request: { subjects }, claims }: Waiting, rows: CountRow[]): RateAnswer {
    const counts = rows.map(countOf);
    const { taken, tokens_taken } = rows[0]!;
    if (!taken) return refusalOf(counts, subjects);
    const change = (requests: number, tokens: number) =>
      new Promise<void>((done) => {
        changes.push({
          rows: rows.map((row, place) => {
            const { organization, subject } = claims[place]!;
            return [organization, subject, row.counts_until.toISOString(), row.entry, requests, tokens];
          }),
          done,
        });
        if (tokens > 0 || changes.length >= call_takes_max) void flush();
        else cancelWait ??= clock.after(wait_ms, () => void flush());
      });
    return {
      answer: "taken",
      readings: tightestOf(counts, subjects),
      giveBack: () => change(-1, -tokens_taken),
      correct: (actual) => change(0, actual - tokens_taken),
    };
  }

  return {
    take(request) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return Promise.resolve(hopeless);
      return new Promise<RateAnswer>((answered, failed) => {
        takes.push({ request, claims: claimsOf(request), answered, failed });
        void start();
      });
    },
    async read(_, subjects) {
      const ids = subjects.map(bareOf);
      const rows = await answeredWithin(db.query<ReadRow>(reading, [ids]), answer_ms, "the count of rates");
      const counts = new Map(rows.map((row) => [row.id, row]));
      return subjects.map(({ limits }, place) => {
        const { requests = 0, tokens = 0, reset_ms = 0 } = counts.get(ids[place]!) ?? {};
        return readingsOf({ requests, tokens, reset_ms, requestsRetry_ms: 0, tokensRetry_ms: 0 }, limits);
      });
    },
    async close() {
      await flush();
    },
  };
}

interface ReadRow {
  id: string;
  requests: number;
  tokens: number;
  reset_ms: number;
}

const reading = `
  select r.subject_id as id, sum(r.requests)::bigint as requests, sum(r.tokens)::bigint as tokens,
    (extract(epoch from max(r.counts_until) - store_now()) * 1000)::bigint as reset_ms
  from usage_rate r where r.subject_id = any($1::uuid[]) and r.counts_until > store_now() group by 1`;

const bareOf = ({ limitedBy, models, id }: RateSubject) =>
  bare(id, models === undefined ? standingSubjects[limitedBy] : modelLimitsPrefix);

/** Throws for an invalid id: then its request alone is refused. */
function claimsOf({ organizationId, subjects }: RateRequest): Claim[] {
  const organization = bare(organizationId, "org_");
  return subjects.map((subject) => ({ organization, subject: bareOf(subject), limits: subject.limits }));
}

/** Rows of the claims, without their positions. */
function claimRows({ request, claims }: Waiting, number: number): Field[][] {
  const { requestId, tokens, tokens_min, elsewhere_ms } = request;
  return claims.map(({ organization, subject, limits }) => [
    number,
    organization,
    subject,
    requestId,
    countedSingly(limits),
    tokens,
    tokens_min,
    limits.requestsPerMinute,
    limits.tokensPerMinute,
    elsewhere_ms === undefined ? null : Math.max(0, Math.round(elsewhere_ms)),
  ]);
}

function countOf(row: CountRow): RateCount {
  return {
    requests: row.requests,
    tokens: row.tokens,
    reset_ms: row.reset_ms,
    requestsRetry_ms: row.requests_retry_ms ?? row.reset_ms,
    tokensRetry_ms: row.tokens_retry_ms ?? row.reset_ms,
  };
}

function arrayOf(rows: Field[][]): string {
  return compositeArray(rows.map((fields) => compositeRow(fields.map(field).join())));
}
