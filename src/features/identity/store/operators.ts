/**
 * OPERATORS: the accounts that may administer the service over HTTP. An operator has a role and a token. A token is a
 * secret, like an API key but with another prefix, of which only the hash is stored. Implemented by `postgres`. The
 * store and the answers of management verbs share one schema of an operator.
 */
import Type from "typebox";
import { credentialFields, id, type Secret } from "../../../core/operations/fields.ts";
import { nullable, oneOf } from "../../../core/protocol/shapes/contract.ts";
import type { Value } from "../../../core/schema/codec.ts";

/**
 * The roles of operators: `admin` may do everything, `viewer` may read everything except operators,
 * `organization-admin` may read and manage one organization.
 */
export const roles = ["admin", "viewer", "organization-admin"] as const;
export type Role = (typeof roles)[number];

export const Operator = Type.Object(
  {
    id: id("op"),
    name: Type.String({
      description: "Never used again for another, because the audit log has it.",
      examples: ["ann"],
    }),
    role: oneOf([...roles], { examples: ["organization-admin"] }),
    organization_id: nullable(id("org")),
    ...credentialFields,
  },
  { $id: "Operator" },
);
export type Operator = Value<typeof Operator>;

export interface FoundOperator {
  operator: Operator;
  secret: Pick<Secret, "expiresAt" | "revokedAt">;
  /** The store's time at the look-up, with which the token's expiry is compared. */
  readAt: Date;
}

export interface Operators {
  /** Finds an operator by the hash of a token, and records `address` as the address of the token's last use. */
  operatorOf(tokenHash: Uint8Array, address: string | null): Promise<FoundOperator | null>;
}
