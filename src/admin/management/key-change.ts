/** A change of a key, as an administrator gives it: only the fields that are given change. Pure. */

import Type from "typebox";
import { plainPattern } from "../../core/inference/plain-text.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { type Scope, scopes } from "../../core/store/directory.ts";
import type { KeyChange, StoredKey } from "../store/key.ts";
import type { ManagedCatalog } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { entry, moment, name } from "./shapes.ts";

export const owner = Type.Optional(nullable(name("The owner, as free text.")));
export const allow_from = Type.Optional(
  nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: plainPattern }), {
      minItems: 1,
      maxItems: 100,
      description: "Addresses and networks of its clients, such as `10.0.0.0/8`. Null: all.",
    }),
  ),
);
export const scopeList = (description?: string) =>
  Type.Array(oneOf([...scopes]), { minItems: 1, maxItems: 10, ...(description ? { description } : {}) });
export const modelList = (description: string) => Type.Array(entry(), { minItems: 1, maxItems: 1000, description });
export const labels = (options: { description?: string; maxProperties?: number }) =>
  Type.Optional(
    Type.Record(Type.String(), nullable(name("Its text.")), {
      propertyNames: Type.String({
        pattern: "^[a-z0-9][a-z0-9._/-]{0,62}$",
        "x-must-be": "1 to 63 lowercase letters, digits, and . _ - /, with a letter or digit first",
      }),
      ...options,
    }),
  );

/** The members of a change of a key. `labels` changes only the labels that it names. */
export const keyChanges = {
  name: Type.Optional(name("What it is for.")),
  scopes: Type.Optional(scopeList()),
  models: Type.Optional(nullable(modelList("IDs of models. Null: every model."))),
  expires_at: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC. Null: never."))),
  owner,
  labels: labels({ description: "Labels that are not named stay; null takes one away." }),
  allow_from,
};
const KeyChanges = Type.Object(keyChanges);
type KeyChanges = Omit<Value<typeof KeyChanges>, "scopes"> & { scopes?: Scope[] | null };

interface KeyContext extends Pick<ManagedCatalog, "models" | "aliases"> {
  now_ms: number;
}

/** A new key: fields that the input leaves out are null, except that the key then gets all three scopes. */
export function newKeyOf(input: KeyChanges & { name: string }, known: KeyContext): NewKeyFields {
  const blank = { models: null, allowFrom: null, expiresAt: null, owner: null, labels: {} };
  const { teamId: _, ...given } = changeOf(input, { labels: {} }, known);
  return { ...blank, scopes: [...scopes], ...given, name: input.name };
}
type NewKeyFields = Required<Omit<KeyChange, "teamId">>;

export function changeOf(
  input: KeyChanges & { team?: { id: string } | null | undefined },
  now: Pick<StoredKey, "labels">,
  { now_ms, ...known }: KeyContext,
): KeyChange {
  const { models, expiresAt, allowFrom, team } = input;
  const change: KeyChange = {};
  if (input.name !== undefined) change.name = input.name;
  if (input.scopes) change.scopes = scopes.filter((scope) => input.scopes!.includes(scope));
  if (input.labels) change.labels = parse.labels(input.labels, now.labels);
  if (models !== undefined) change.models = models && parse.models(models, known.models, known.aliases);
  if (expiresAt !== undefined) change.expiresAt = expiresAt && parse.future(expiresAt, now_ms);
  if (input.owner !== undefined) change.owner = input.owner;
  if (allowFrom !== undefined) change.allowFrom = allowFrom && parse.networks(allowFrom);
  if (team !== undefined) change.teamId = team?.id ?? null;
  if (Object.keys(change).length === 0) fail("Specify what to change of the key.");
  return change;
}
