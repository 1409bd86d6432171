// Steps of random histories (sequences of commands) that budget-laws.test.ts and ledger-laws.test.ts share.

import fc from "fast-check";
import { uuidOf } from "../../../src/core/store/ids.ts";
import type { Store } from "./ledger-stores.ts";

const hour_ms = 3_600_000;

/** A limit; null if there is none. */
export const amount = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 6000 }));
export const lease = fc.constantFrom(1_000, hour_ms, 100 * hour_ms);

/** Commands of different requests, which go in one batch. */
export const batchOf = <One extends { which: number }>(command: fc.Arbitrary<One>) =>
  fc.record({
    kind: fc.constant("batch" as const),
    commands: fc.uniqueArray(command, { minLength: 1, maxLength: 8, selector: (one) => one.which }),
  });

/**
 * Time never goes back here. If it did, a session that has ended might be open again or not, depending on whether
 * somebody read it in between. The histories test the guarantees that remain in that case (test/histories).
 */
export const time = fc.record({
  kind: fc.constant("time" as const),
  by_ms: fc.oneof(
    fc.integer({ min: 0, max: 2 * hour_ms }),
    fc.constantFrom(1, 5 * hour_ms, 7 * 24 * hour_ms),
    fc.integer({ min: 0, max: 40 * 24 * hour_ms }),
  ),
});
export const recovery = fc.record({ kind: fc.constant("recover" as const) });
export const extraUsage = fc.record({ kind: fc.constant("extra" as const), enabled: fc.boolean(), capNanos: amount });

/** Sets an organization's extra usage in the store, and returns it as the reference model takes it. */
export async function setExtra(
  { db }: Store,
  organization: string,
  { enabled, capNanos }: { enabled: boolean; capNanos: number | null },
) {
  await db.query("update organization set extra_usage_enabled = $2, extra_usage_cap_nanos = $3 where id = $1", [
    uuidOf(organization, "org_"),
    enabled,
    capNanos,
  ]);
  return { enabled, capNanos };
}
