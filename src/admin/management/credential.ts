/**
 * A credential, which is a key's secret or an operator's token: how it may be shown, how it is rotated, and the
 * sentences that commands print about it.
 */
import Type from "typebox";
import { key_random_bytes, newKey, type SecretKind, secretOf } from "../../core/auth/credential.ts";
import type { Credential, Secret } from "../../core/operations/fields.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { instant } from "../../core/time/written.ts";
import type { Revocation, Rotation } from "../store/credential.ts";
import { flag, type Said } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { duration } from "./shapes.ts";

export const once = "In plain text, this once. Null if the request was a repeat: rotate to get another.";

/**
 * The state of a secret or an operator by this machine's clock, for display; whether a request is let in is decided by
 * the store's clock.
 */
export function secretState(
  { revokedAt, expiresAt }: Pick<Credential, "revokedAt" | "expiresAt">,
  now_ms: number,
): "revoked" | "expired" | "active" {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

/**
 * The only output that shows a new secret. `secret` is null if the request was a repeat, whose answer has no secret.
 */
export function secretSaid(first: string, secret: string | null, last: string): Said {
  return { pieces: [`${first}\n`, { secret: secret ?? "" }, last] };
}

/** The time at which a credential was created, and its creator, in words. */
export const madeWords = ({ createdAt, createdBy }: Pick<Credential, "createdAt" | "createdBy">) =>
  `${instant(createdAt)} by ${createdBy}`;

export const usedWords = ({ lastUsedAt, lastUsedFrom }: Pick<Credential, "lastUsedAt" | "lastUsedFrom">) =>
  [instant(lastUsedAt) ?? "never", lastUsedFrom && `from ${lastUsedFrom}`].filter(Boolean).join(" ");

type Noun = "secret" | "token";

/**
 * How long an old secret still works after a rotation if the caller does not say how long: 24 hours. A grace always
 * ends.
 */
const graceUsual_ms = 86_400_000;

/** The field of an input that says how long the old secret works after a rotation. */
export const grace = Type.Optional(nullable(duration("Such as `30m`, `1h`, `7d`, or `0s`; else `24h`.")));
export const graceFlag = (noun: Noun) =>
  flag("--grace <time>", `how long the old ${noun} works: 30m, 1h, 7d, or 0s (default: 24h)`);

interface Holder {
  id: string;
  secrets: readonly Secret[];
}

/** A sentence that says until when secrets that rotations replaced still work. */
export function oldEndsInWords(kind: "key" | "operator", { id, secrets }: Holder, now_ms: number): string {
  const noun = kind === "key" ? "secret" : "token";
  const old = secrets.slice(1).filter((secret) => secretState(secret, now_ms) === "active");
  if (old.length === 0) return `The old ${noun} no longer works.\n`;
  const last_ms = Math.max(...old.map(({ expiresAt }) => expiresAt?.getTime() ?? Number.POSITIVE_INFINITY));
  const until = Number.isFinite(last_ms) ? instant(new Date(last_ms)) : "it is revoked";
  return `The old ${noun} works until ${until}. To end it now, run: sluice ${kind} revoke ${id} --old\n`;
}

export const old = (noun: Noun) =>
  Type.Optional(Type.Boolean({ description: `Only the ${noun}s that a rotation replaced.` }));
export const oldFlag = (noun: Noun) => flag("--old", `revoke only the old ${noun}s that rotations replaced`);

export const newSecret = ({ random }: Pick<ManagementContext, "random">, form: SecretKind) =>
  newKey(random(key_random_bytes), form);

interface Steps<Kept> {
  form: SecretKind;
  grace_ms: number | null | undefined;
  rotate(rotation: Rotation): Promise<Kept | "revoked" | null>;
  revoke(revocation: Revocation): Promise<Kept | null>;
  /** The refusal in words; `why` completes the sentence, such as `has expired`. */
  refusal(why: string): string;
  gone(id: string): never;
}

/** Rotates a credential: gives it a new secret, which is returned in plain text. */
export async function rotated<Kept>(
  context: Pick<ManagementContext, "actor" | "now_ms" | "random">,
  { id, revokedAt, expiresAt }: Pick<Credential, "revokedAt" | "expiresAt"> & { id: string },
  { form, grace_ms, rotate, revoke, refusal, gone }: Steps<Kept>,
): Promise<{ kept: Kept; secret: string }> {
  const { actor, now_ms } = context;
  if (revokedAt) fail(refusal("is revoked"), "wrong_state");
  if (expiresAt && expiresAt.getTime() <= now_ms()) fail(refusal("has expired"), "wrong_state");
  const graceEndsAt = new Date(now_ms() + (grace_ms ?? graceUsual_ms));
  const secret = newSecret(context, form);
  const after = await rotate({ id, secret: secretOf(secret), graceEndsAt, actor });
  if (after === "revoked") return fail(refusal("is revoked"), "wrong_state");
  // A grace of 0 revokes the old secrets: a deadline would come from this machine's clock, and with a store's clock
  // that is behind, the secrets would still work.
  const kept = after && grace_ms === 0 ? await revoke({ id, old: true, actor }) : after;
  return { kept: kept ?? gone(id), secret };
}
