/** Makes the claim of a request from its idempotency key. */
import type { Principal } from "../../core/auth/verdict.ts";
import type { Operation } from "../../core/store/ledger.ts";

/** The hash that identifies a claim. It differs by operation, and by person or key of the organization. */
export function claimOf(
  { key, organization, person }: Principal,
  operation: Operation,
  idempotencyKey: string,
): string {
  const hash = new Bun.CryptoHasher("sha256");
  return hash.update(JSON.stringify([organization.id, person?.id ?? key.id, operation, idempotencyKey])).digest("hex");
}
