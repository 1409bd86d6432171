/**
 * UNKNOWN CREDENTIALS: bounds the cost of keys that this node has never seen or heard of. Anybody can compute the
 * checksum of a key, so each made-up one causes a look-up. There are two bounds (docs/design/keys.md, Unknown keys):
 *
 * - for look-ups of unknown keys: how many run at a time, and how many a second may find nothing. A look-up that finds a key does not count.
 * - for failures of an address: how many a minute, for any reason. Beyond that, its unknown keys are refused without a look-up.
 *
 * A refusal without a look-up is also sent slowly (`SlowRefusal`).
 */
import { Fault, type FaultCode } from "../inference/fault.ts";
import { Bucket, type BucketSize } from "../time/bucket.ts";

export interface UnknownCredentialLimits {
  /** The most look-ups of unknown credentials that run at once; further ones wait. */
  unknown_lookups_max: number;
  /** The number of look-ups a second that may find nothing. */
  fruitless_lookups: BucketSize;
  /**
   * Further look-ups that may find nothing, for addresses without a remembered failure. Absent: there are no further
   * ones.
   */
  unblemished?: BucketSize;
  failures_of_one_address_per_minute: number;
  /** The most addresses whose failures are remembered. The one that failed longest ago is forgotten first. */
  addresses_max: number;
}

export const unknownCredentialLimits: UnknownCredentialLimits = {
  unknown_lookups_max: 16,
  fruitless_lookups: { burst: 128, per_second: 50 },
  failures_of_one_address_per_minute: 300,
  addresses_max: 10_000,
};

/** A refusal without a look-up. It is delayed, so that a client that hammers does not get thousands of them a second. */
export class SlowRefusal extends Fault {}

export interface UnknownCredentials {
  /** Waits until a look-up may run, for an unknown credential from this address. Throws `SlowRefusal` if none may. */
  enter(address: string): Promise<{ leave(isFound: boolean): void }>;
  /**
   * Counts a refused credential, and returns the refusal to send: a 429 once the client's address has had too many
   * refusals.
   */
  failed(address: string, refusal: Fault): Fault;
}

export function unknownCredentials(limits: UnknownCredentialLimits, now_ms: () => number): UnknownCredentials {
  const fruitless = new Bucket(limits.fruitless_lookups, now_ms());
  const unblemished = limits.unblemished ? new Bucket(limits.unblemished, now_ms()) : null;
  const failures = new Map<string, Bucket>();
  const perMinute = limits.failures_of_one_address_per_minute;
  const size = { burst: perMinute, per_second: perMinute / 60 };
  const queue: (() => void)[] = [];
  let running = 0;

  function failuresOf(address: string): Bucket {
    const bucket = failures.get(address) ?? new Bucket(size, now_ms());
    failures.delete(address);
    failures.set(address, bucket);
    if (failures.size > limits.addresses_max) failures.delete(failures.keys().next().value as string);
    return bucket;
  }

  /**
   * Called when a look-up ends. If another look-up waits, it starts instead; otherwise one look-up fewer is running.
   */
  function next(): void {
    const first = queue.shift();
    if (first) first();
    else running--;
  }

  return {
    async enter(address) {
      const now = now_ms();
      const own = failures.get(address);
      if (own && own.tokens(now) < 1) throw tooManyFailures(own.waitSeconds(now));
      const taken = fruitless.take(now) ? fruitless : !own && unblemished?.take(now) ? unblemished : null;
      if (!taken) throw tooManyUnknown(fruitless.waitSeconds(now));
      if (running < limits.unknown_lookups_max) running++;
      else await new Promise<void>((resolve) => queue.push(resolve));
      return {
        leave(isFound) {
          if (isFound) taken.giveBack();
          next();
        },
      };
    },
    failed(address, refusal) {
      const own = failuresOf(address);
      const now = now_ms();
      return own.take(now) ? refusal : tooManyFailures(own.waitSeconds(now));
    },
  };
}

function tooManyFailures(retryAfterSeconds: number): Fault {
  return slow(
    "rate_limit_exceeded",
    "Too many requests from your address had no valid API key. Check your key, and try again later.",
    retryAfterSeconds,
  );
}

function tooManyUnknown(retryAfterSeconds: number): Fault {
  return slow(
    "overloaded",
    "The service is checking too many unknown API keys at once. Please try again.",
    retryAfterSeconds,
  );
}

function slow(code: FaultCode, message: string, retryAfterSeconds: number): Fault {
  return new SlowRefusal(code, message, { retryAfterSeconds });
}
