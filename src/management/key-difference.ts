/** The difference between an organization's keys and what somebody wants them to be. Pure. */
import { type Given, jsonOf, type Value } from "../schema/codec.ts";
import { canonical } from "../store/audit-chain.ts";
import type { Key, KeyChange } from "../store/directory.ts";
import { fail } from "./error.ts";
import { changeOf, newKeyOf } from "./key-change.ts";
import { type Named, verbNamed } from "./verbs.ts";

const createKey = verbNamed("createKey");

/** A key that is wanted, found by its name among the keys that are not revoked. What is absent stays as it is. */
export type WantedKey = Omit<Given<Named<"updateKey">["takes"]>, "id"> & { name: string };

export interface KeyDifference {
  slug: string;
  /** Null: there is no such key, and it is to be made. */
  key: Pick<Key, "id" | "version"> | null;
  /** All that is to be set. */
  wanted: WantedKey;
  changed: { field: string; from: unknown; to: unknown }[];
}

/** The differences in the order of `wanted`. Throws a ManagementError where no verb can make them. */
export function keyDifferences(
  slug: string,
  wanted: readonly WantedKey[],
  existing: readonly Key[],
  now_ms: number,
): KeyDifference[] {
  return wanted.flatMap((one) => {
    const named = existing.filter(({ name, state }) => name === one.name && state !== "revoked");
    if (named.length > 1) {
      fail(`${slug} has ${named.length} keys '${one.name}', so it isn't said which is meant. Rename one of them.`);
    }
    return differenceOf(slug, one, named[0] ?? null, now_ms);
  });
}

function differenceOf(slug: string, wanted: WantedKey, key: Key | null, now_ms: number): KeyDifference[] {
  // The service knows which models there are.
  const known = { models: wanted.models ?? [], now_ms };
  if (!key) {
    newKeyOf(taken(slug, wanted), known);
    return [{ slug, key, wanted, changed: [{ field: "key", from: null, to: wanted.name }] }];
  }
  const changes = withoutSameExpiry(wanted, key);
  const change = changeOf(taken(slug, changes), key, known);
  const changed = (Object.keys(change) as (keyof typeof change)[]).flatMap((field) =>
    canonical(key[field]) === canonical(change[field])
      ? []
      : [{ field: shownNames[field], from: key[field], to: change[field] }],
  );
  return changed.length === 0 ? [] : [{ slug, key, wanted: changes, changed }];
}

function taken(organization: string, wanted: WantedKey): Value<typeof createKey.takes> {
  return createKey.take(jsonOf(createKey.takes, { organization, ...wanted }));
}

/** The fields by the names that the interfaces give them. */
const shownNames: Record<keyof KeyChange, string> = {
  name: "name",
  scopes: "scopes",
  owner: "owner",
  labels: "labels",
  allowedModels: "allowed_models",
  allowedAddresses: "allowed_addresses",
  expiresAt: "expires_at",
};

/** An expiry that has passed since it was set is no change. */
function withoutSameExpiry({ expires, ...wanted }: WantedKey, { expiresAt }: Key): WantedKey {
  const isSame = typeof expires === "string" && expiresAt?.getTime() === Date.parse(expires);
  return expires === undefined || isSame ? wanted : { ...wanted, expires };
}
