/**
 * Returns the result of `work`, or throws an Error that `what` did not answer if it takes longer than `wait_ms`,
 * measured by a countdown. The work itself goes on.
 */
import type { Clock } from "./clock.ts";
import { Countdown } from "./countdown.ts";

export async function within<T>(
  work: Promise<T>,
  wait_ms: number,
  what: string,
  late = (message: string): Error => new Error(message),
  clock?: Clock,
): Promise<T> {
  const silence = Promise.withResolvers<never>();
  const countdown = new Countdown(() => silence.reject(late(`${what} did not answer within ${wait_ms} ms`)), clock);
  countdown.set(wait_ms);
  try {
    return await Promise.race([work, silence.promise]);
  } finally {
    countdown.stop();
  }
}
