/**
 * Sliding rates (limits per minute) without a store that all processes share, because none is configured or it is away.
 * Each process then counts by itself, against its share of each limit. For a minute after an outage, a request that the
 * shared store admits must also fit beside those that this process admitted by itself, so that the limit does not count
 * twice (docs/design/usage.md, Sliding limits).
 */
import { minute_ms, type RateAnswer, type RateRequest, type Rates, type RateTaken } from "../../core/store/rates.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type OwnRates, tightestReadings } from "../counting/rates.ts";

/**
 * Rates that are counted in this process alone, against its share of each limit. `processes`: the number of running
 * processes.
 */
export function sharedRates(own: OwnRates, processes: () => number): Rates {
  return {
    take: (request) => own.take(request, processes()),
    read: (organizationId, subjects) => own.read(organizationId, subjects, processes()),
    close: own.close,
  };
}

interface StandbyParts {
  first: Rates;
  /**
   * The counts of this process alone. `share` checks them against this process's share of the limits while the shared
   * store (`first`) is away.
   */
  own: OwnRates;
  share: Rates;
  clock: Clock;
  /** Called with the reason when the shared store goes away, and with null when it is back. */
  turned?: (cause: unknown) => void;
}

/** After a failure the shared store is left alone for this long; then one request tries it. */
const retry_ms = 1_000;
/**
 * How long after an outage the counts of the shared store and of this process both apply. The entries of the shared
 * store may expire up to a second late.
 */
const both_ms = minute_ms + 1_000;

export function standbyRates({ first, own, share, clock, turned }: StandbyParts): Rates {
  let away = false;
  let trying = false;
  let failedAt_ms = Number.NEGATIVE_INFINITY;
  const sinceFailure_ms = () => clock.now_ms() - failedAt_ms;

  function failed(cause: unknown): void {
    failedAt_ms = clock.now_ms();
    if (!away) turned?.(cause);
    away = true;
  }

  async function onFirst(request: RateRequest): Promise<RateAnswer> {
    const isTrial = away;
    if (isTrial) trying = true;
    let answer: RateAnswer;
    try {
      answer = await first.take(request);
    } catch (cause) {
      failed(cause);
      return share.take(request);
    } finally {
      if (isTrial) trying = false;
    }
    if (isTrial) {
      away = false;
      turned?.(null);
    }
    return answer.answer === "taken" && sinceFailure_ms() < both_ms ? both(request, answer) : answer;
  }

  /**
   * Takes from this process's own count as well. If that count has no room, gives back what the shared store has
   * granted.
   */
  async function both(request: RateRequest, one: RateTaken): Promise<RateAnswer> {
    const other = await own.take(request);
    if (other.answer === "taken") return together(one, other);
    void one.giveBack();
    return other;
  }

  return {
    take(request) {
      return away && (trying || sinceFailure_ms() < retry_ms) ? share.take(request) : onFirst(request);
    },
    async read(organizationId, subjects) {
      if (away) return share.read(organizationId, subjects);
      return first.read(organizationId, subjects).catch(() => share.read(organizationId, subjects));
    },
    async close() {
      await Promise.all([first.close(), own.close()]);
    },
  };
}

function together(one: RateTaken, other: RateTaken): RateTaken {
  return {
    answer: "taken",
    readings: tightestReadings([one.readings, other.readings]),
    async giveBack() {
      await Promise.all([one.giveBack(), other.giveBack()]);
    },
    async correct(tokens) {
      await Promise.all([one.correct(tokens), other.correct(tokens)]);
    },
  };
}
