/**
 * The acts that each kind of key allows: the one rule behind the table of docs/access.md, Kinds of keys. A verb that
 * names a key declares its act (verb.ts). Pure.
 *
 * The keys of sign-ins and of identity tokens stand for a person whom an issuer vouches for. They cannot be rotated:
 * the new secret would still work after the issuer has stopped vouching for the person. They have no limits of their
 * own: the next sign-in or token replaces the key, and the limit would end with it.
 */
import type { KeyKind } from "../../core/store/directory.ts";
import type { StoredKey } from "../store/key.ts";
import { fail } from "./error.ts";

/**
 * The acts on a key. `limit`: any change of the key's limits. `try`: a request as this key by somebody who administers
 * it.
 */
export const keyActs = ["show", "update", "limit", "rotate", "revoke", "try"] as const;
export type KeyAct = (typeof keyActs)[number];

type NamedKey = Pick<StoredKey, "id" | "kind" | "personId" | "organizationId">;
type Refusals = Partial<Record<KeyAct, (key: NamedKey) => string>>;

const limit = ({ personId, organizationId }: NamedKey) =>
  `has no team and no limits that are set. Set the limits of the person: sluice limit set ${personId} --org ${organizationId}`;

/** The acts that each kind refuses, each with the end of a sentence that says what to do instead. */
const refused: Record<KeyKind, Refusals> = {
  key: {},
  "sign-in": {
    update: (key) =>
      `cannot be changed: its name is the device's, and its rights are those of the membership. It ${limit(key)}`,
    limit,
    rotate: () => "cannot be rotated. Revoke it, which ends the sign-in, and sign in again.",
    try: () => "is called with by its device alone. Leave the key out, or name another.",
  },
  jwt: {
    update: (key) => `cannot be changed: its rights are those of the person's membership. It ${limit(key)}`,
    limit,
    rotate: () => "cannot be rotated, because it has no secret: the issuer's tokens call with it.",
    revoke: ({ personId, organizationId }) =>
      `cannot be revoked, because the next token would get another key. To refuse the person: sluice person suspend ${personId}. To end a membership that was given by hand: sluice membership take ${personId} --org ${organizationId}. One by a rule ends at the issuer.`,
    try: () => "is called with by the issuer's tokens alone. Leave the key out, or name another.",
  },
};

const nouns: Record<KeyKind, string> = {
  key: "key",
  "sign-in": "key of a sign-in",
  jwt: "key of identity tokens",
};

export const allows = (kind: KeyKind, act: KeyAct): boolean => refused[kind][act] === undefined;

export function refuseByKind(key: NamedKey, act: KeyAct): void {
  const why = refused[key.kind][act];
  if (why) fail(`The ${nouns[key.kind]} ${key.id} ${why(key)}`, "wrong_state");
}
