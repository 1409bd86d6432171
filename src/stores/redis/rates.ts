/**
 * Sliding rates in Redis, for many nodes: one script (rates-script.ts), which takes for a request's organization, its
 * team and its key at once, or for none. What one organization's requests ask for in one turn of the process goes in one
 * call, with the corrections of requests that ended (waiting-changes.ts), and is decided one by one, in its order. Each
 * of the subjects has one key, all under the organization's hash tag. One key, so that Redis, when it runs out of memory,
 * forgets all of it or nothing.
 *
 * Every call is sent at most once, and one that has no answer within its deadline has failed, whatever Redis still does
 * with it: then too much may be counted for a minute, and too little only of a request that came to more than it took.
 */
import {
  hopelessLimit,
  type RateCount,
  type RateReadings,
  type RateRequest,
  type RateSubject,
  type Rates,
  type RateTaken,
  rateRefusal,
  readingsOf,
  tightestOf,
} from "../../core/store/rates.ts";
import { within } from "../../core/time/cancellation.ts";
import type { RedisConnection } from "./connection.ts";
import { RatesCall } from "./rates-call.ts";
import { ratesScript, type SubjectReply, type TakeReply } from "./rates-script.ts";
import { type CarriedChanges, type Change, type WaitingChanges, waitingChanges } from "./waiting-changes.ts";

export interface RedisRatesOptions {
  /** An answer after this time does not count. */
  answer_ms?: number;
  /** How long a correction waits for a request with which it is sent. */
  wait_ms?: number;
  /** The prefix of keys, before the organization's id. Tests that share one Redis use different ones. */
  prefix?: string;
  /** A clock in whole milliseconds that replaces that of Redis. Expiry of keys still follows Redis's own. */
  now_ms?: () => number;
}

/** The corrections that may wait for one organization. Beyond these they are sent at once, without a request. */
const changes_max = 96;
/** The requests in one call. Redis serves nobody else meanwhile. */
const takes_max = 64;

export function redisRates(redis: Pick<RedisConnection, "script">, options: RedisRatesOptions = {}): Rates {
  const { answer_ms = 100, wait_ms = 25, prefix = "sluice:rates:" } = options;
  const script = redis.script(ratesScript);
  /** The calls that are sent at the end of this turn of the event loop, by organization. */
  const leaving = new Map<string, RatesCall>();
  const waiting = waitingChanges({
    wait_ms,
    changes_max,
    async send(organizationId, changes) {
      await send(callOf(organizationId), changes).catch(() => {});
    },
  });

  const callOf = (organizationId: string) => new RatesCall(`${prefix}{${organizationId}}`);

  async function send(call: RatesCall, changes: readonly Change[]): Promise<readonly TakeReply[]> {
    const asked = call.asked(options.now_ms?.() ?? null, changes);
    return JSON.parse((await script(call.keys, [asked])) as string);
  }

  /** Sends a call, with every correction that waits for its organization. */
  function depart(organizationId: string, call: RatesCall): void {
    leaving.delete(organizationId);
    const carried: CarriedChanges | null = waiting.take(organizationId);
    const answer = send(call, carried?.changes ?? []);
    if (carried) void answer.then(carried.done, carried.done);
    within(answer, answer_ms, "Redis").then(call.answer.resolve, call.answer.reject);
  }

  function departAll(): void {
    for (const [organizationId, call] of leaving) depart(organizationId, call);
  }

  function nextCall(organizationId: string): RatesCall {
    const open = leaving.get(organizationId);
    if (open) return open;
    if (leaving.size === 0) setImmediate(departAll);
    const call = callOf(organizationId);
    leaving.set(organizationId, call);
    return call;
  }

  function ask(organizationId: string, subjects: readonly RateSubject[], request: RateRequest | null) {
    const call = nextCall(organizationId);
    const reply = call.add(subjects, request);
    if (call.takes.length === takes_max) depart(organizationId, call);
    return reply;
  }

  return {
    async take(request) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return hopeless;
      const { organizationId, subjects } = request;
      const reply = await ask(organizationId, subjects, request);
      const [taken, , replies] = reply;
      const counts = replies.map(countOf);
      if (taken !== 1) return rateRefusal(counts, subjects);
      return new Taken(waiting, request, reply, tightestOf(counts, subjects));
    },
    async read(organizationId, subjects) {
      const [, , replies] = await ask(organizationId, subjects, null);
      return subjects.map(({ limits }, place) => readingsOf(countOf(replies[place]!), limits));
    },
    close: () => waiting.flush(),
  };
}

/** A class, because closures would be made again for each request (docs/design/runtime.md, Bun as a server). */
class Taken implements RateTaken {
  readonly answer = "taken";
  readonly readings: RateReadings;
  readonly #waiting: WaitingChanges;
  readonly #request: RateRequest;
  readonly #reply: TakeReply;

  constructor(waiting: WaitingChanges, request: RateRequest, reply: TakeReply, readings: RateReadings) {
    this.readings = readings;
    this.#waiting = waiting;
    this.#request = request;
    this.#reply = reply;
  }

  giveBack(): Promise<void> {
    const [, tokensTaken] = this.#reply;
    return this.#changed(-1, -tokensTaken);
  }

  correct(actual: number): Promise<void> {
    const [, tokensTaken] = this.#reply;
    return this.#changed(0, actual - tokensTaken);
  }

  #changed(requests: number, tokens: number): Promise<void> {
    const { organizationId, requestId, subjects } = this.#request;
    const [, , replies] = this.#reply;
    const changes = subjects.map((subject, place): Change => {
      const [, , , , , number, until_ms] = replies[place]!;
      return { subject, number, name: until_ms || requestId, requests, tokens };
    });
    return this.#waiting.add(organizationId, changes);
  }
}

function countOf([requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms]: SubjectReply): RateCount {
  return { requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms };
}
