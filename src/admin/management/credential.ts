/** A credential, which is a key's secret or an operator's token: how it may be shown, its rotation, and its words. */
import Type from "typebox";
import { secretOf } from "../../core/auth/key.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { instant } from "../../core/time/written.ts";
import type { Administration } from "../store/administration.ts";
import type { Secret } from "../store/shapes.ts";
import type { Said } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { duration } from "./shapes.ts";

export const once = "In plain text, this once. Null if the request was a repeat: rotate to get another.";

/** The state of a secret or an operator by this machine's clock, for display; the store's clock decides about requests. */
export function secretState(
  { revokedAt, expiresAt }: { revokedAt: Date | null; expiresAt: Date | null },
  now_ms: number,
): "revoked" | "expired" | "active" {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

/** The only words with the secret itself. Null: the answer of a repeat has none. */
export function secretSaid(first: string, secret: string | null, last: string): Said {
  return { pieces: [`${first}\n`, { secret: secret ?? "" }, last] };
}

/** A rotation whose caller chooses no grace. An old secret always ends. */
const graceUsual_ms = 86_400_000;

/** How long the old secret works. */
export const grace = Type.Optional(nullable(duration("Such as `30m`, `1h`, `7d`, or `0s`; else `24h`.")));

interface Holder {
  id: string;
  secrets: readonly Secret[];
}

/** When the secrets that a rotation replaced end, the last of them. */
export function oldEndsInWords(kind: "key" | "operator", { id, secrets }: Holder, now_ms: number): string {
  const noun = kind === "key" ? "secret" : "token";
  const old = secrets.slice(1).filter((secret) => secretState(secret, now_ms) === "active");
  if (old.length === 0) return `The old ${noun} no longer works.\n`;
  const last_ms = Math.max(...old.map(({ expiresAt }) => expiresAt?.getTime() ?? Number.POSITIVE_INFINITY));
  const until = Number.isFinite(last_ms) ? instant(new Date(last_ms)) : "it is revoked";
  return `The old ${noun} works until ${until}. To end it now, run: sluice ${kind} revoke ${id} --old\n`;
}

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
  { secret, grace_ms, rotate, revoke, refusal }: Rotation<Rotated>,
): Promise<Rotated | null> {
  if (revokedAt) fail(refusal("is revoked"), "wrong_state");
  if (expiresAt && expiresAt.getTime() <= now_ms()) fail(refusal("has expired"), "wrong_state");
  const graceEndsAt = new Date(now_ms() + (grace_ms ?? graceUsual_ms));
  const owner = await rotate({ id, secret: secretOf(secret), graceEndsAt, actor });
  if (owner === "revoked") return fail(refusal("is revoked"), "wrong_state");
  // No grace at all is a revocation: a deadline would come from this machine's clock, and the store's may be behind it.
  return owner && grace_ms === 0 ? revoke({ id, old: true, actor }) : owner;
}
