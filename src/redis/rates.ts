/**
 * Sliding rates in Redis, for many nodes: one script a request (rates-script.ts), which takes for its organization, its
 * team and its key at once, or for none, and carries the corrections of requests that ended (waiting-changes.ts). Each of
 * the three has one key, all under the organization's hash tag. One key, so that Redis, when it runs out of memory,
 * forgets all of it or nothing.
 *
 * Every call is sent at most once, and one that has no answer within its deadline has failed, whatever Redis still does
 * with it: then too much may be counted for a minute, and too little only of a request that came to more than it took.
 */
import {
  countedSingly,
  hopelessLimit,
  type RateCount,
  type RateRequest,
  type RateSubject,
  type Rates,
  readingsOf,
  refusalOf,
  tightestOf,
} from "../store/rates.ts";
import { within } from "../time/deadline.ts";
import type { RedisConnection } from "./connection.ts";
import { type RatesReply, ratesScript, subjectReply } from "./rates-script.ts";
import { type Change, type Riders, waitingChanges } from "./waiting-changes.ts";

export interface RedisRatesOptions {
  /** An answer that takes longer is none. */
  answer_ms?: number;
  /** How long a correction waits for a request to ride with. */
  wait_ms?: number;
  /** Before the organization's id in a key; tests of one Redis keep apart by it. */
  prefix?: string;
  /** In place of Redis's own clock, whole milliseconds. Its deadlines for forgetting still follow its own. */
  now_ms?: () => number;
}

/** Of one organization, until its corrections need no request to ride with. */
const changes_max = 96;

type Asked = Pick<RateRequest, "requestId" | "tokens" | "tokens_min">;

export function redisRates(redis: Pick<RedisConnection, "script">, options: RedisRatesOptions = {}): Rates {
  const { answer_ms = 100, wait_ms = 25, prefix = "sluice:rates:" } = options;
  const script = redis.script(ratesScript);
  const waiting = waitingChanges({
    wait_ms,
    changes_max,
    async send(changes) {
      await call([], [], null, changes).catch(() => {});
    },
  });

  /** The organization's own first key is all that most requests have. */
  const keyOf = (organizationId: string, { limitedBy, id }: RateSubject) =>
    limitedBy === "organization" ? `${prefix}{${organizationId}}` : `${prefix}{${organizationId}}:${id}`;

  /** Without a request it reads, or with no subjects changes alone. */
  function call(
    keys: readonly string[],
    subjects: readonly RateSubject[],
    asked: Asked | null,
    changes: readonly Change[],
  ): Promise<unknown> {
    const names = [...keys];
    const values = [
      String(subjects.length),
      asked?.requestId ?? "",
      String(asked?.tokens ?? ""),
      String(asked?.tokens_min ?? ""),
      String(options.now_ms?.() ?? ""),
    ];
    for (const { limits } of subjects) {
      values.push(countedSingly(limits) ? "0" : "1000");
      values.push(String(limits.requestsPerMinute ?? ""), String(limits.tokensPerMinute ?? ""));
    }
    for (const { key, number, name, requests, tokens } of changes) {
      names.push(key);
      values.push(String(number), name, String(requests), String(tokens));
    }
    return script(names, values);
  }

  /** With all that waits for its organization. */
  async function answered(
    organizationId: string,
    keys: readonly string[],
    subjects: readonly RateSubject[],
    asked: Asked | null,
  ): Promise<RatesReply> {
    const riders: Riders | null = waiting.board(organizationId);
    const answer = call(keys, subjects, asked, riders?.changes ?? []);
    if (riders) void answer.then(riders.done, riders.done);
    return (await within(answer, answer_ms, "Redis")) as RatesReply;
  }

  return {
    async take(request) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return hopeless;
      const { organizationId, subjects } = request;
      const keys = subjects.map((subject) => keyOf(organizationId, subject));
      const reply = await answered(organizationId, keys, subjects, request);
      const counts = subjects.map((_, place) => countOf(reply, place));
      const [taken, tokensTaken] = reply;
      if (taken !== 1) return refusalOf(counts, subjects);
      const changed = (requests: number, tokens: number) =>
        waiting.add(
          organizationId,
          keys.map((key, place): Change => {
            const [, , , , , number, name] = subjectReply(reply, place);
            return { key, number, name, requests, tokens };
          }),
        );
      return {
        answer: "taken",
        readings: tightestOf(counts, subjects),
        giveBack: () => changed(-1, -tokensTaken),
        correct: (actual) => changed(0, actual - tokensTaken),
      };
    },
    async read(organizationId, subjects) {
      const keys = subjects.map((subject) => keyOf(organizationId, subject));
      const reply = await answered(organizationId, keys, subjects, null);
      return subjects.map(({ limits }, place) => readingsOf(countOf(reply, place), limits));
    },
    close: () => waiting.flush(),
  };
}

function countOf(reply: RatesReply, place: number): RateCount {
  const [requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms] = subjectReply(reply, place);
  return { requests, tokens, reset_ms, requestsRetry_ms, tokensRetry_ms };
}
