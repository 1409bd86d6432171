/**
 * Sliding rates of two stores: the first counts, and the second counts while the first is away. For a minute around an
 * outage both count: what one missed, the other has, so a limit holds for everything that this node lets through.
 * Several nodes may notice an outage at different moments; then a limit may be passed for a minute, by as much again at
 * most (docs/design/usage.md, Sliding limits).
 */
import { minute_ms, type RateAnswer, type RateRequest, type Rates, type RateTaken, tightest } from "../store/rates.ts";
import type { Clock } from "../time/clock.ts";

export interface StandbyParts {
  first: Rates;
  standby: Rates;
  clock: Clock;
  /** Called with the reason when the first store goes away, and with null when it is back. */
  turned?: (cause: unknown) => void;
}

/** After a failure the first store is left alone for this long; then one request tries it. */
const retry_ms = 1_000;
/** Shared entries of one second end up to a second late. */
const both_ms = minute_ms + 1_000;

export function standbyRates({ first, standby, clock, turned }: StandbyParts): Rates {
  let away = false;
  let trying = false;
  let failedAt_ms = Number.NEGATIVE_INFINITY;
  /** When the first store alone last counted requests; before this node's time other nodes may have done so. */
  let aloneAt_ms = clock.now_ms();

  function failed(cause: unknown): void {
    failedAt_ms = clock.now_ms();
    if (!away) turned?.(cause);
    away = true;
  }

  function onStandby(request: RateRequest): Promise<RateAnswer> {
    const elsewhere_ms = clock.now_ms() - aloneAt_ms;
    return standby.take(elsewhere_ms <= both_ms ? { ...request, elsewhere_ms } : request);
  }

  async function alone(request: RateRequest): Promise<RateAnswer> {
    try {
      const answer = await first.take(request);
      aloneAt_ms = clock.now_ms();
      return answer;
    } catch (cause) {
      failed(cause);
      return onStandby(request);
    }
  }

  async function both(request: RateRequest): Promise<RateAnswer> {
    const isTrial = away;
    if (isTrial) trying = true;
    const [one, other] = await Promise.allSettled([first.take(request), onStandby(request)]);
    if (isTrial) trying = false;
    if (one.status === "rejected") {
      failed(one.reason);
      if (other.status === "rejected") throw other.reason;
      return other.value;
    }
    if (away) turned?.(null);
    away = false;
    if (other.status === "fulfilled") return stricter(one.value, other.value);
    aloneAt_ms = clock.now_ms();
    return one.value;
  }

  return {
    take(request) {
      const since_ms = clock.now_ms() - failedAt_ms;
      if (away && (trying || since_ms < retry_ms)) return onStandby(request);
      return away || since_ms < both_ms ? both(request) : alone(request);
    },
    async read(organizationId, subjects) {
      if (away) return standby.read(organizationId, subjects);
      return first.read(organizationId, subjects).catch(() => standby.read(organizationId, subjects));
    },
    async close() {
      await Promise.all([first.close(), standby.close()]);
    },
  };
}

/** Taken only if both stores have taken it; if only one has, it is given back there. */
function stricter(one: RateAnswer, other: RateAnswer): RateAnswer {
  if (one.answer === "taken" && other.answer === "taken") return together(one, other);
  if (one.answer === "taken") {
    void one.giveBack();
    return other;
  }
  if (other.answer === "taken") {
    void other.giveBack();
    return one;
  }
  return one.answer === "refused" && other.answer === "refused" && one.retry_ms < other.retry_ms ? other : one;
}

function together(one: RateTaken, other: RateTaken): RateTaken {
  return {
    answer: "taken",
    readings: tightest([one.readings, other.readings]),
    async giveBack() {
      await Promise.all([one.giveBack(), other.giveBack()]);
    },
    async correct(tokens) {
      await Promise.all([one.correct(tokens), other.correct(tokens)]);
    },
  };
}
