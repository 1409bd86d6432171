/** The rotation and the revocation of a CREDENTIAL, which is a key or an operator, by its ID. */
import { Secret } from "../../core/operations/fields.ts";
import { decode } from "../../core/schema/codec.ts";
import type { Actor, NewSecret } from "../../core/store/directory.ts";

/** A secret, decoded from the JSON that SQL makes of its row. */
export const secretOfRow = (json: unknown): Secret => decode(Secret, json);

/** A rotation adds a secret to a credential; the earlier secrets end at `graceEndsAt` at the latest. */
export interface Rotation {
  id: string;
  secret: NewSecret;
  graceEndsAt: Date | null;
  actor: Actor;
}

/**
 * A revocation ends the credential as a whole, or with `old` only the secrets that the newest secret replaced.
 * Idempotent.
 */
export interface Revocation {
  id: string;
  old: boolean;
  actor: Actor;
}
