/** The rates of a process: how much its counters rose in the last half minute. Pure. */
import type { Figures } from "../../core/store/fleet.ts";
import type { Bucket, Instruments } from "./registry.ts";

type Rates = Omit<Figures, "running" | "waiting">;

interface CounterReading {
  at_ms: number;
  inputTokens: number;
  outputTokens: number;
  requests: number;
  failures: number;
  firstParts: Bucket[];
}

const window_ms = 30_000;

export function flow() {
  let readings: CounterReading[] = [];
  return {
    /** Adds a reading, and returns the rates until then. */
    add(now: CounterReading): Rates {
      // One reading that is older than the window stays, so that the readings span the whole window.
      const first = readings.findLastIndex(({ at_ms }) => at_ms <= now.at_ms - window_ms);
      readings = [...readings.slice(Math.max(0, first)), now];
      return ratesBetween(readings[0]!, now);
    },
  };
}

function ratesBetween(first: CounterReading, now: CounterReading): Rates {
  const seconds = (now.at_ms - first.at_ms) / 1000;
  const rate = (name: "inputTokens" | "outputTokens" | "requests" | "failures") =>
    seconds > 0 ? (now[name] - first[name]) / seconds : 0;
  return {
    inputTokensPerSecond: rate("inputTokens"),
    outputTokensPerSecond: rate("outputTokens"),
    requestsPerSecond: rate("requests"),
    failuresPerSecond: rate("failures"),
    firstParts: now.firstParts
      .map(({ upTo, count }, at) => ({ within_s: upTo, requests: count - first.firstParts[at]!.count }))
      .filter(({ requests }) => requests > 0),
  };
}

export function readingOf({ sum, buckets }: Pick<Instruments, "sum" | "buckets">, at_ms: number): CounterReading {
  const output = sum("inference_tokens_total", { class: "output" });
  return {
    at_ms,
    inputTokens: sum("inference_tokens_total") - output,
    outputTokens: output,
    requests: sum("inference_requests_total"),
    failures: sum("inference_requests_total", { outcome: "failed" }),
    firstParts: buckets("inference_time_to_first_part_seconds"),
  };
}
