/**
 * OPERATORS: who may administer over HTTP. An operator has a role and a token. A token is like a key with a form of its
 * own, and no more of it is stored. Implemented by `postgres`.
 */
import type { Actor, NewSecret, Secret } from "./directory.ts";
import type { Page, PageOf, Repeat } from "./page.ts";

/** `admin` may do everything, `viewer` see everything, `organization-admin` see and manage one organization. */
export const roles = ["admin", "viewer", "organization-admin"] as const;
export type Role = (typeof roles)[number];

/** An operator in the form that may be shown: never the token. */
export interface Operator {
  /** `op_` + UUIDv7 hex; stays through rotations. */
  id: string;
  /** Never used again for another operator, because the audit log has it. */
  name: string;
  role: Role;
  /** The organization of an `organization-admin`; null for other roles. */
  organizationId: string | null;
  createdBy: string;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  /** An address. */
  lastUsedFrom: string | null;
  /** The newest first. */
  secrets: Secret[];
}

export interface FoundOperator {
  operator: Operator;
  secret: Pick<Secret, "expiresAt" | "revokedAt">;
  /** The store's clock at the look-up. It decides about expiry. */
  readAt: Date;
}

export interface Operators {
  /** Finds an operator by the hash of a token, and records `address` as where the token was last used. */
  operatorOf(tokenHash: Uint8Array, address: string | null): Promise<FoundOperator | null>;
  createOperator(input: {
    id: string;
    name: string;
    role: Role;
    organizationId: string | null;
    expiresAt: Date | null;
    secret: NewSecret;
    actor: Actor;
    repeat?: Repeat | undefined;
  }): Promise<Operator | "name_taken" | { repeated: string } | "reused">;
  /** Returns a page of operators in the order of their creation. */
  pageOperators(page: Page): Promise<PageOf<Operator>>;
  findOperator(nameOrId: string): Promise<Operator | null>;
  rotateOperator(input: {
    id: string;
    secret: NewSecret;
    graceEndsAt: Date | null;
    actor: Actor;
  }): Promise<Operator | "revoked" | null>;
  /** Idempotent. `last_admin`: nobody could administer any more, and nothing was changed. */
  revokeOperator(input: { id: string; old: boolean; actor: Actor }): Promise<Operator | "last_admin" | null>;
}
