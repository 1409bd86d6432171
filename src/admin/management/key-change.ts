/** A change of a key, as an administrator gives it: only what is named changes. Pure. */

import { type Key, type KeyChange, type Scope, scopes } from "../../core/store/directory.ts";
import type { ManagedCatalog } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/** Null: `models` and `addresses` allow all, `expires` is never, `owner` nobody. `labels` changes the named ones. */
export interface KeyChanges {
  name?: string | undefined;
  scopes?: Scope[] | null | undefined;
  models?: string[] | null | undefined;
  expires?: Date | null | undefined;
  owner?: string | null | undefined;
  labels?: Record<string, string | null> | undefined;
  /** Addresses and networks of clients. */
  addresses?: string[] | null | undefined;
}

interface Known extends Pick<ManagedCatalog, "models" | "aliases"> {
  now_ms: number;
}

/** A new key: what is left out is as null, and scopes are all three. */
export function newKeyOf(input: KeyChanges & { name: string }, known: Known): Required<KeyChange> {
  const blank = { allowedModels: null, allowedAddresses: null, expiresAt: null, owner: null, labels: {} };
  return { ...blank, scopes: [...scopes], ...changeOf(input, blank, known), name: input.name };
}

export function changeOf(input: KeyChanges, { labels }: Pick<Key, "labels">, known: Known): KeyChange {
  const { name, models, expires, owner, addresses } = input;
  const change: KeyChange = {};
  if (name !== undefined) change.name = name;
  if (input.scopes) change.scopes = scopes.filter((scope) => input.scopes!.includes(scope));
  if (input.labels) change.labels = parse.labels(input.labels, labels);
  if (models !== undefined) change.allowedModels = models && parse.models(models, known.models, known.aliases);
  if (expires !== undefined) change.expiresAt = expires && parse.future(expires, known.now_ms);
  if (owner !== undefined) change.owner = owner;
  if (addresses !== undefined) change.allowedAddresses = addresses && parse.networks(addresses);
  if (Object.keys(change).length === 0) fail("Specify what to change of the key.");
  return change;
}
