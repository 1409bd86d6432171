/**
 * MEMORY: state that a process does not share. Sliding rates: for each limited organization, team and key a queue
 * of entries, oldest first, and their sums.
 */
import { minute_ms, type RateLimits } from "../../core/store/rates.ts";
import {
  countedSingly,
  hopelessLimit,
  type OwnRates,
  type RateCount,
  rateRefusal,
  readingsOf,
  tightestOf,
} from "../counting/rates.ts";

interface Entry {
  /** The entry counts until just before this instant. */
  end_ms: number;
  requests: number;
  tokens: number;
  /** The number of the second whose requests share this entry; null if the entry counts a single request. */
  second: number | null;
}

interface Queue {
  entries: Entry[];
  /** The index of the first entry that has not ended yet. */
  head: number;
  requests: number;
  tokens: number;
}

const emptyQueue = (): Queue => ({ entries: [], head: 0, requests: 0, tokens: 0 });

/** Makes the sliding rates of one process. `now_ms`: a monotonic clock. */
export function memoryRates(now_ms: () => number): OwnRates {
  const queues = new Map<string, Queue>();
  let swept_ms = now_ms();

  /** Removes the queues of subjects without entries once a minute, to free memory. */
  function sweep(at_ms: number): void {
    if (at_ms - swept_ms < minute_ms) return;
    swept_ms = at_ms;
    for (const [id, queue] of queues) {
      prune(queue, at_ms);
      if (queue.entries.length === 0) queues.delete(id);
    }
  }

  function prunedQueueOf(id: string, at_ms: number): Queue {
    const queue = queues.getOrInsertComputed(id, emptyQueue);
    prune(queue, at_ms);
    return queue;
  }

  return {
    async take(request, processes = 1) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return hopeless;
      const at_ms = Math.floor(now_ms());
      sweep(at_ms);
      const { subjects, tokens_min } = request;
      const places = subjects.map(({ id, limits }): LimitedQueue => {
        return { queue: prunedQueueOf(id, at_ms), limits, share: shareOf(limits, processes) };
      });
      const tokens = Math.max(tokens_min, Math.min(request.tokens, ...places.map(tokensLeft)));
      if (!places.every((place) => hasRoom(place, tokens))) {
        return rateRefusal(
          places.map((place) => countOf(place, at_ms, tokens_min)),
          subjects,
        );
      }
      const taken = places.map((place) => ({ ...place, entry: entered(place, at_ms, tokens) }));
      const change = async (requests: number, more: number) => {
        for (const one of taken) changeEntry(one, requests, more, now_ms());
      };
      return {
        answer: "taken",
        readings: tightestOf(
          places.map((place) => countOf(place, at_ms, null)),
          subjects,
        ),
        giveBack: () => change(-1, -tokens),
        correct: (actual) => change(0, actual - tokens),
      };
    },
    /**
     * Reads the counts, as if each process had admitted as many requests as this one: if this process has used up its
     * share of a limit, the whole limit is reported as used up.
     */
    async read(_, subjects, processes = 1) {
      const at_ms = Math.floor(now_ms());
      return subjects.map(({ id, limits }) => {
        const queue = queues.get(id) ?? emptyQueue();
        prune(queue, at_ms);
        const count = countOf({ queue, limits, share: limits }, at_ms, null);
        const [requests, tokens] = [count.requests * processes, count.tokens * processes];
        return readingsOf({ ...count, requests, tokens }, limits);
      });
    },
    async close() {
      queues.clear();
    },
  };
}

interface LimitedQueue {
  queue: Queue;
  limits: RateLimits;
  /** The limits divided by the number of processes, rounded up. */
  share: RateLimits;
}

function shareOf({ requestsPerMinute, tokensPerMinute }: RateLimits, processes: number): RateLimits {
  const among = (limit: number | null) => (limit === null ? null : Math.ceil(limit / processes));
  return { requestsPerMinute: among(requestsPerMinute), tokensPerMinute: among(tokensPerMinute) };
}

const tokensLeft = ({ queue, share }: LimitedQueue) => (share.tokensPerMinute ?? Infinity) - queue.tokens;

/**
 * Whether the request fits this process's share of the limits. A request with more tokens than the share is admitted if
 * this process has counted no tokens yet. It would not fit on other processes either, so otherwise none would ever
 * admit it.
 */
function hasRoom({ queue, share }: LimitedQueue, tokens: number): boolean {
  const { requestsPerMinute, tokensPerMinute } = share;
  const fits = queue.tokens === 0 || queue.tokens + tokens <= (tokensPerMinute ?? Infinity);
  return fits && queue.requests + 1 <= (requestsPerMinute ?? Infinity);
}

/**
 * The count for the whole limit, as if the other processes had used up their shares. `needed`: the tokens that a
 * refused request needs; null if it was not refused.
 */
function countOf({ queue, limits, share }: LimitedQueue, at_ms: number, needed: number | null): RateCount {
  const { requestsPerMinute, tokensPerMinute } = share;
  return {
    requests: queue.requests + (limits.requestsPerMinute ?? 0) - (requestsPerMinute ?? 0),
    tokens: queue.tokens + (limits.tokensPerMinute ?? 0) - (tokensPerMinute ?? 0),
    reset_ms: Math.max(0, (queue.entries.at(-1)?.end_ms ?? at_ms) - at_ms),
    requestsRetry_ms: needed === null ? 0 : retry_ms(queue, at_ms, "requests", 1, requestsPerMinute),
    tokensRetry_ms:
      needed === null || queue.tokens === 0 ? 0 : retry_ms(queue, at_ms, "tokens", needed, tokensPerMinute),
  };
}

function entered({ queue, limits }: LimitedQueue, at_ms: number, tokens: number): Entry {
  const second = countedSingly(limits) ? null : Math.floor(at_ms / 1000);
  const last = queue.entries.at(-1);
  const shared = last && second !== null && last.second === second ? last : null;
  const from_ms = second === null ? at_ms : (second + 1) * 1000;
  const entry: Entry = shared ?? { end_ms: from_ms + minute_ms, requests: 0, tokens: 0, second };
  if (!shared) queue.entries.push(entry);
  entry.requests += 1;
  entry.tokens += tokens;
  queue.requests += 1;
  queue.tokens += tokens;
  return entry;
}

/** Changes the counts of an entry, unless it has ended. */
function changeEntry(
  { queue, entry }: LimitedQueue & { entry: Entry },
  requests: number,
  tokens: number,
  at_ms: number,
) {
  if (entry.end_ms <= at_ms) return;
  entry.requests += requests;
  entry.tokens += tokens;
  queue.requests += requests;
  queue.tokens += tokens;
  while (queue.entries.length > queue.head && queue.entries.at(-1)!.requests === 0) queue.entries.pop();
}

/**
 * Removes entries that have ended. An entry that ends before an older one (after a change of plan) is removed together
 * with the older one, at most a second late.
 */
function prune(queue: Queue, at_ms: number): void {
  const { entries } = queue;
  for (let entry = entries[queue.head]; entry && entry.end_ms <= at_ms; entry = entries[queue.head]) {
    queue.requests -= entry.requests;
    queue.tokens -= entry.tokens;
    queue.head += 1;
  }
  if (queue.head * 2 < entries.length && queue.head < 1024) return;
  entries.splice(0, queue.head);
  queue.head = 0;
}

/**
 * The time until enough entries have ended to make room for `need`. If `need` is more than the limit, the time until
 * all entries have ended.
 */
function retry_ms(
  queue: Queue,
  at_ms: number,
  what: "requests" | "tokens",
  need: number,
  limit: number | null,
): number {
  let over = queue[what] + need - (limit ?? Infinity);
  if (over <= 0) return 0;
  over = Math.min(over, queue[what]);
  for (const entry of queue.entries.slice(queue.head)) {
    over -= entry[what];
    if (over <= 0) return entry.end_ms - at_ms;
  }
  return minute_ms;
}
