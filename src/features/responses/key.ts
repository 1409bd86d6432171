/** The claim that follows from the idempotency key of a request. */
import type { Principal } from "../../core/auth/verdict.ts";
import type { Operation } from "../../core/store/ledger.ts";

/** It is separate for each operation, and for each person or key of the organization. */
export function claimOf(
  { key, organization, person }: Principal,
  operation: Operation,
  idempotencyKey: string,
): string {
  const hash = new Bun.CryptoHasher("sha256");
  return hash.update(JSON.stringify([organization.id, person?.id ?? key.id, operation, idempotencyKey])).digest("hex");
}
