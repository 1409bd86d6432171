/** The idempotency key of a request: its header, and the claim that follows from it. */
import Type from "typebox";
import type { Principal } from "../../core/auth/verdict.ts";
import type { Operation } from "../../core/store/ledger.ts";

export const keyHeader = "idempotency-key";

/** The declaration of the header for operations. */
export const keyHeaders = Type.Object({
  [keyHeader]: Type.Optional(
    Type.String({
      pattern: "^[ -~]{1,255}$",
      description:
        "Makes a repeat harmless: within a day, the same request with the same key gets the same answer, which is charged once. While the first request runs, the repeat joins it. The request runs on if its client leaves.",
      "x-must-be": "1 to 255 printable ASCII characters",
    }),
  ),
});

/** The claim of an idempotency key. It is separate for each operation, and for each person or key of the organization. */
export function claimOf(
  { key, organization, person }: Principal,
  operation: Operation,
  idempotencyKey: string,
): string {
  const hash = new Bun.CryptoHasher("sha256");
  return hash.update(JSON.stringify([organization.id, person?.id ?? key.id, operation, idempotencyKey])).digest("hex");
}
