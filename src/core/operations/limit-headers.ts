/**
 * The plan's limits per minute as headers, named as the protocol's clients expect. Limits that the plan lacks are left
 * out.
 */
import type { Operation } from "../store/ledger.ts";
import type { RateReadings } from "../store/rates.ts";

/** The headers. `now_ms`: milliseconds since the epoch. */
export function limitHeaders(operation: Operation, readings: RateReadings, now_ms: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const what of ["requests", "tokens"] as const) {
    const reading = readings[what];
    if (!reading) continue;
    const { limit, remaining, reset_ms } = reading;
    if (operation === "messages") {
      const family = `anthropic-ratelimit-${what}`;
      headers[`${family}-limit`] = String(limit);
      headers[`${family}-remaining`] = String(remaining);
      headers[`${family}-reset`] = new Date(now_ms + reset_ms).toISOString();
    } else {
      headers[`x-ratelimit-limit-${what}`] = String(limit);
      headers[`x-ratelimit-remaining-${what}`] = String(remaining);
      headers[`x-ratelimit-reset-${what}`] = duration(reset_ms);
    }
  }
  return headers;
}

/** A duration in OpenAI's form: `120ms`, `12.5s`, `1m0s`. */
export function duration(ms: number): string {
  const whole_ms = Math.max(0, Math.ceil(ms));
  if (whole_ms < 1000) return whole_ms === 0 ? "0s" : `${whole_ms}ms`;
  const minutes = Math.floor(whole_ms / 60_000);
  const seconds = (whole_ms % 60_000) / 1000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}
