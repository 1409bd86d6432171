/**
 * Sliding rates in Redis, for many nodes: one script (rates-script.ts), which counts a request either for all of its
 * organization, its team and its key, or for none of them. The requests of one turn of the event loop are sent in one
 * call, with the corrections of requests that ended (waiting-changes.ts), and are decided one by one, in their order;
 * those that come while a call to a single server is under way are sent together when it is over. All keys of an
 * organization have its hash tag; on a cluster, where all keys of a call must have the same tag, each organization has
 * a call of its own. A subject has a single key, so that Redis, when it runs out of memory, forgets all of a subject's
 * counts or none.
 *
 * Every call is sent at most once. A call without an answer within its deadline counts as failed, even if Redis still
 * carries it out. Then too much may be counted for a minute. Too little is counted only if the request then uses more
 * than it took.
 */
import { ReplyError } from "ioredis";
import type { RateReadings, RateRequest, RateSubject, Rates, RateTaken } from "../../core/store/rates.ts";
import { within } from "../../core/time/cancellation.ts";
import { hopelessLimit, type RateCount, rateRefusal, readingsOf, tightestOf } from "../counting/rates.ts";
import type { RedisConnection } from "./connection.ts";
import { RatesCall } from "./rates-call.ts";
import { ratesScript, type SubjectReply, type TakeReply } from "./rates-script.ts";
import { type CarriedChanges, type Change, waitingChanges } from "./waiting-changes.ts";

interface RedisRatesOptions {
  /** How long a request waits for an answer, the call before its own included. A later answer is ignored. */
  answer_ms?: number;
  /** How long a correction waits for a request that it can be sent with. */
  wait_ms?: number;
  /** The prefix of keys, before the organization's id. Tests that share one Redis use different ones. */
  prefix?: string;
  /** A clock in whole milliseconds that replaces that of Redis. Expiry of keys still follows Redis's own. */
  now_ms?: () => number;
}

/**
 * The most corrections that wait for a call. If there are more, they are sent immediately, in a call without a request.
 */
const changes_max = 96;
/** The most requests in one call. Redis serves nobody else meanwhile. */
const takes_max = 64;

export function redisRates(
  redis: Pick<RedisConnection, "script" | "isOneServer">,
  options: RedisRatesOptions = {},
): Rates {
  const { answer_ms = 100, wait_ms = 25, prefix = "sluice:rates:" } = options;
  const script = redis.script(ratesScript, { isGathered: true });
  /**
   * The calls that are sent at the end of this turn of the event loop, or when the call before is over. The key is the
   * organization's id on a cluster, and empty on a single server, where all organizations share a call.
   */
  const leaving = new Map<string, RatesCall>();
  /**
   * The call to a single server that was sent last and is not over, under the same key. A cluster's calls are not here,
   * and hold back none, because the driver already sends together what comes during one.
   */
  const underway = new Map<string, RatesCall>();
  let isTurnAsked = false;
  const waiting = waitingChanges({
    wait_ms,
    changes_max,
    async send(changes) {
      await send(new RatesCall(prefix), changes).catch(() => {});
    },
  });
  const togetherWith = (organizationId: string) => (redis.isOneServer() ? "" : organizationId);
  const correct: Correct = (organizationId, changes) => waiting.add(togetherWith(organizationId), changes);

  async function send(call: RatesCall, changes: readonly Change[]): Promise<readonly TakeReply[]> {
    const asked = call.asked(options.now_ms?.() ?? null, changes);
    const replies: unknown = JSON.parse((await script(call.keys, [asked])) as string);
    if (!Array.isArray(replies)) throw new Error("Redis answered the rates with something else than a list");
    return replies;
  }

  /** Sends a call, with all corrections that wait for it. */
  function depart(together: string, call: RatesCall): void {
    leaving.delete(together);
    if (together === "") underway.set(together, call);
    const carried: CarriedChanges | null = waiting.take(together);
    const replies = send(call, carried?.changes ?? []);
    if (carried) void replies.then(carried.done, carried.done);
    call.replies.resolve(replies);
  }

  /**
   * Sends what waited for the end of this call. If Redis did not answer, the waiting call fails too, because Redis
   * would hardly answer it within the rest of its time.
   */
  function follow(together: string, over: RatesCall, failure: unknown): void {
    if (underway.get(together) !== over) return;
    underway.delete(together);
    const next = leaving.get(together);
    if (!next) return;
    if (failure === null || failure instanceof ReplyError) depart(together, next);
    else {
      leaving.delete(together);
      next.replies.reject(failure);
    }
  }

  function departAll(): void {
    isTurnAsked = false;
    for (const [together, call] of leaving) if (!underway.has(together)) depart(together, call);
  }

  function nextCall(together: string): RatesCall {
    const open = leaving.get(together);
    if (open) return open;
    if (!isTurnAsked && !underway.has(together)) {
      isTurnAsked = true;
      setImmediate(departAll);
    }
    const call = new RatesCall(prefix);
    leaving.set(together, call);
    within(call.replies.promise, answer_ms, "Redis").then(
      (replies) => {
        call.answered(replies);
        follow(together, call, null);
      },
      (cause: unknown) => {
        if (leaving.get(together) === call) leaving.delete(together);
        call.failed(cause);
        follow(together, call, cause);
      },
    );
    return call;
  }

  function ask(organizationId: string, subjects: readonly RateSubject[], request: RateRequest | null) {
    const together = togetherWith(organizationId);
    const call = nextCall(together);
    const reply = call.add(organizationId, subjects, request);
    if (call.takes.length === takes_max) depart(together, call);
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
      return new Taken(correct, request, reply, tightestOf(counts, subjects));
    },
    async read(organizationId, subjects) {
      const [, , replies] = await ask(organizationId, subjects, null);
      return subjects.map(({ limits }, place) => readingsOf(countOf(replies[place]!), limits));
    },
    close: () => waiting.flush(),
  };
}

/** Sends changes with the next call. Resolves when that call is over. */
type Correct = (organizationId: string, changes: readonly Change[]) => Promise<void>;

/**
 * The amounts that one request took. A class, because closures would be made again for each request
 * (docs/design/runtime.md, Memory).
 */
class Taken implements RateTaken {
  readonly answer = "taken";
  readonly readings: RateReadings;
  readonly #correct: Correct;
  readonly #request: RateRequest;
  readonly #reply: TakeReply;

  constructor(correct: Correct, request: RateRequest, reply: TakeReply, readings: RateReadings) {
    this.readings = readings;
    this.#correct = correct;
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
      return { organizationId, subject, number, name: until_ms || requestId, requests, tokens };
    });
    return this.#correct(organizationId, changes);
  }
}

function countOf([requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms]: SubjectReply): RateCount {
  return { requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms };
}
