/** A KEY, as the store and the verbs of management return it: never with its secret. Pure. */
import Type from "typebox";
import { credentialFields, id, instant, version } from "../../core/operations/fields.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { keyKinds, scopes } from "../../core/store/directory.ts";

/**
 * The states of a key. `expired`: past its expiry, or older than its organization allows. `unused`: unused for longer
 * than its organization allows. `active`: the key works.
 */
export const keyStates = ["active", "revoked", "expired", "unused"] as const;
export type KeyState = (typeof keyStates)[number];

export const keyFields = {
  id: id("key"),
  kind: oneOf([...keyKinds], { description: "`sign-in`: a device of a person. `jwt`: an issuer's tokens." }),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug.", examples: ["acme"] }),
  name: Type.String({ examples: ["build server"] }),
  scopes: Type.Array(oneOf([...scopes]), { examples: [["inference:create"]] }),
  models: nullable(Type.Array(Type.String(), { description: "Null: every model." })),
  allow_from: nullable(Type.Array(Type.String(), { description: "Addresses and networks. Null: every address." })),
  owner: nullable(Type.String({ description: "A person or a team, as free text." })),
  person_id: nullable(id("per")),
  person: nullable(
    Type.String({ description: "The person's name, else e-mail address. Null: a service key, or erased." }),
  ),
  labels: Type.Record(Type.String(), Type.String()),
  team: nullable(Type.Object({ id: id("team"), name: Type.String() })),
  state: oneOf([...keyStates], { description: "When this was read." }),
  ends_at: nullable(
    instant("When it ended, or will end: revoked, expired, older or longer unused than its organization allows."),
  ),
  version: version(),
  ...credentialFields,
};

const StoredKey = Type.Object(keyFields);
export type StoredKey = Value<typeof StoredKey>;

type Settable = "name" | "scopes" | "models" | "allowFrom" | "expiresAt" | "owner" | "labels";
export type KeyChange = Partial<Pick<StoredKey, Settable>> & { teamId?: string | null };
