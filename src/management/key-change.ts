/** What is to change of a key, as an administrator gives it: only what is named. Pure. */
import type { Key, KeyChange } from "../store/directory.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/** Null: `models` and `addresses` allow all, `expires` is never, `owner` nobody. `labels` changes the named ones. */
export interface KeyChanges {
  name?: string | null;
  scopes?: string[] | null;
  models?: string[] | null;
  expires?: string | null;
  owner?: string | null;
  labels?: Record<string, string | null> | null;
  /** Addresses and networks of clients. */
  addresses?: string[] | null;
}

/** What a new key is to be: what is left out is as null. */
export function newKeyOf(
  input: KeyChanges,
  known: { models: readonly string[]; now_ms: number },
): Omit<Key, "id" | "organizationId" | Unset> {
  const blank = { allowedModels: null, allowedAddresses: null, expiresAt: null, owner: null, labels: {} };
  const name = parse.name(input.name, "The key's name");
  const change = changeOf({ ...input, name }, blank, known);
  return { ...blank, ...change, name, scopes: change.scopes ?? parse.scopes(null) };
}

type Unset =
  | "createdAt"
  | "createdBy"
  | "revokedAt"
  | "lastUsedAt"
  | "lastUsedFrom"
  | "state"
  | "endsAt"
  | "version"
  | "secrets";

export function changeOf(
  input: KeyChanges,
  { labels }: Pick<Key, "labels">,
  known: { models: readonly string[]; now_ms: number },
): KeyChange {
  const orNull = <T, U>(value: T | null, read: (given: T) => U): U | null => (value === null ? null : read(value));
  const change: KeyChange = {};
  if (!parse.isAbsent(input.name)) change.name = parse.name(input.name, "The key's name");
  if (!parse.isAbsent(input.scopes)) change.scopes = parse.scopes(input.scopes);
  if (!parse.isAbsent(input.labels)) change.labels = parse.labels(input.labels, labels);
  const { models, expires, owner, addresses } = input;
  if (models !== undefined) change.allowedModels = orNull(models, (ids) => parse.models(ids, known.models));
  if (expires !== undefined) change.expiresAt = orNull(expires, (at) => parse.futureInstant(at, known.now_ms));
  if (owner !== undefined) change.owner = orNull(owner, (text) => parse.name(text, "The key's owner"));
  if (addresses !== undefined) change.allowedAddresses = orNull(addresses, parse.networks);
  if (Object.keys(change).length === 0) fail("Specify what to change of the key.");
  return change;
}
