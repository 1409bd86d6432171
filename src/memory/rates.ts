/**
 * MEMORY: what one node alone need not share. Sliding rates: a queue of entries for each organization, oldest first, and
 * their sums.
 */
import {
  countedSingly,
  hopelessLimit,
  minute_ms,
  type RateCount,
  type RateLimits,
  type RateRequest,
  type Rates,
  readingsOf,
  refusalOf,
} from "../store/rates.ts";

interface Entry {
  /** It counts until just before this instant. */
  end_ms: number;
  requests: number;
  tokens: number;
  /** Taken in turn by the requests of this second; null: one request's own. */
  second: number | null;
}

interface Queue {
  entries: Entry[];
  /** Entries before this one have ended. */
  head: number;
  requests: number;
  tokens: number;
}

/** `now_ms` is monotonic. */
export function memoryRates(now_ms: () => number): Rates {
  const queues = new Map<string, Queue>();
  let swept_ms = now_ms();

  function queueOf(organizationId: string): Queue {
    const known = queues.get(organizationId);
    if (known) return known;
    const queue: Queue = { entries: [], head: 0, requests: 0, tokens: 0 };
    queues.set(organizationId, queue);
    return queue;
  }

  /** Organizations that went quiet give back their room, once a minute. */
  function sweep(at_ms: number): void {
    if (at_ms - swept_ms < minute_ms) return;
    swept_ms = at_ms;
    for (const [organizationId, queue] of queues) {
      prune(queue, at_ms);
      if (queue.entries.length === 0) queues.delete(organizationId);
    }
  }

  return {
    async take(request) {
      const hopeless = hopelessLimit(request);
      if (hopeless) return { answer: "never", limit: hopeless };
      const at_ms = Math.floor(now_ms());
      sweep(at_ms);
      const queue = queueOf(request.organizationId);
      prune(queue, at_ms);
      const { tokens_min, limits } = request;
      const tokens = tokensWithin(queue, request);
      const taken = hasRoom(queue, tokens, limits);
      const entry = taken ? entered(queue, at_ms, tokens, limits) : null;
      const count: RateCount = {
        taken,
        requests: queue.requests,
        tokens: queue.tokens,
        reset_ms: Math.max(0, (queue.entries.at(-1)?.end_ms ?? at_ms) - at_ms),
        requestsRetry_ms: taken ? 0 : retry_ms(queue, at_ms, "requests", 1, limits.requestsPerMinute),
        tokensRetry_ms: taken ? 0 : retry_ms(queue, at_ms, "tokens", tokens_min, limits.tokensPerMinute),
      };
      if (!entry) return refusalOf(count, limits);
      const change = async (requests: number, more: number) => {
        if (entry.end_ms <= now_ms()) return;
        entry.requests += requests;
        entry.tokens += more;
        queue.requests += requests;
        queue.tokens += more;
        while (queue.entries.length > queue.head && queue.entries.at(-1)!.requests === 0) queue.entries.pop();
      };
      return {
        answer: "taken",
        readings: readingsOf(count, limits),
        giveBack: () => change(-1, -tokens),
        correct: (actual) => change(0, actual - tokens),
      };
    },
    async close() {
      queues.clear();
    },
  };
}

/** What it asks for, or what is left of it, or the least. */
function tokensWithin(queue: Queue, { tokens, tokens_min, limits }: RateRequest): number {
  return Math.max(tokens_min, Math.min(tokens, (limits.tokensPerMinute ?? Infinity) - queue.tokens));
}

function hasRoom(queue: Queue, tokens: number, { requestsPerMinute, tokensPerMinute }: RateLimits): boolean {
  return (
    queue.requests + 1 <= (requestsPerMinute ?? Infinity) && queue.tokens + tokens <= (tokensPerMinute ?? Infinity)
  );
}

function entered(queue: Queue, at_ms: number, tokens: number, limits: RateLimits): Entry {
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

/** Takes out what has ended. An entry that ends before an older one (after a change of plan) waits for that, a second at most. */
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

/** Until as many have ended as must make room. */
function retry_ms(
  queue: Queue,
  at_ms: number,
  what: "requests" | "tokens",
  need: number,
  limit: number | null,
): number {
  let over = queue[what] + need - (limit ?? Infinity);
  if (over <= 0) return 0;
  for (const entry of queue.entries.slice(queue.head)) {
    over -= entry[what];
    if (over <= 0) return entry.end_ms - at_ms;
  }
  return minute_ms;
}
