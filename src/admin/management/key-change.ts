/** A change of a key, as an administrator gives it: only the fields that are given change. Pure. */

import { type Scope, scopes } from "../../core/store/directory.ts";
import type { KeyChange, StoredKey } from "../store/key.ts";
import type { ManagedCatalog } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/**
 * The changes of a key. Null in `models` allows all models, in `allowFrom` all addresses; in `expiresAt` it means
 * never, in `owner` nobody. `labels` changes only the labels that it names.
 */
export interface KeyChanges {
  name?: string | undefined;
  scopes?: Scope[] | null | undefined;
  models?: string[] | null | undefined;
  expiresAt?: Date | null | undefined;
  owner?: string | null | undefined;
  labels?: Record<string, string | null> | undefined;
  /** The addresses and networks from which clients may call. */
  allowFrom?: string[] | null | undefined;
}

/** A change of an existing key. */
export interface ExistingKeyChanges extends KeyChanges {
  team?: { id: string } | null | undefined;
}

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
  input: ExistingKeyChanges,
  now: Pick<StoredKey, "labels">,
  { now_ms, ...known }: KeyContext,
): KeyChange {
  const { name, models, expiresAt, owner, allowFrom, team } = input;
  const change: KeyChange = {};
  if (name !== undefined) change.name = name;
  if (input.scopes) change.scopes = scopes.filter((scope) => input.scopes!.includes(scope));
  if (input.labels) change.labels = parse.labels(input.labels, now.labels);
  if (models !== undefined) change.models = models && parse.models(models, known.models, known.aliases);
  if (expiresAt !== undefined) change.expiresAt = expiresAt && parse.future(expiresAt, now_ms);
  if (owner !== undefined) change.owner = owner;
  if (allowFrom !== undefined) change.allowFrom = allowFrom && parse.networks(allowFrom);
  if (team !== undefined) change.teamId = team?.id ?? null;
  if (Object.keys(change).length === 0) fail("Specify what to change of the key.");
  return change;
}
