/** The rotation of a secret: a key's, or an operator's, which is a token. */
import Type from "typebox";
import { secretOf } from "../../core/auth/key.ts";
import type { Administration } from "../../core/store/directory.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { duration, nullable } from "./shapes.ts";

/** How long the old secret works. Null: until it is revoked. */
export const grace = Type.Optional(nullable(duration("Such as `30m`, `1h`, `7d`, or `0s`.")));

interface Owner {
  id: string;
  revokedAt: Date | null;
  expiresAt: Date | null;
}

interface Rotation<Rotated> {
  secret: string;
  grace_ms: number | null | undefined;
  rotate(input: Parameters<Administration["rotateKey"]>[0]): Promise<Rotated | "revoked" | null>;
  revoke(input: Parameters<Administration["revokeKey"]>[0]): Promise<Rotated | null>;
  /** The refusal in words; `why` is a verb, such as `has expired`. */
  refusal(why: string): string;
}

/** Gives the owner another secret; null: the owner is gone. */
export async function rotated<Rotated>(
  { actor, now_ms }: Pick<ManagementContext, "actor" | "now_ms">,
  { id, revokedAt, expiresAt }: Owner,
  { secret, grace_ms = null, rotate, revoke, refusal }: Rotation<Rotated>,
): Promise<Rotated | null> {
  if (revokedAt) fail(refusal("is revoked"), "wrong_state");
  if (expiresAt && expiresAt.getTime() <= now_ms()) fail(refusal("has expired"), "wrong_state");
  const graceEndsAt = grace_ms === null ? null : new Date(now_ms() + grace_ms);
  const owner = await rotate({ id, secret: secretOf(secret), graceEndsAt, actor });
  if (owner === "revoked") return fail(refusal("is revoked"), "wrong_state");
  // No grace at all is a revocation: a deadline would come from this machine's clock, and the store's may be behind it.
  return owner && grace_ms === 0 ? revoke({ id, old: true, actor }) : owner;
}
