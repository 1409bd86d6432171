/** A key as another node answered it, as the verbs' result: records.ts the other way round. Pure. */
import type { OwnedKey } from "../../management/owned.ts";
import type { Key } from "../../store/directory.ts";

export type ReadKey = Key & { organization: string };

export function readKey({ organization, ...key }: ReadKey): OwnedKey {
  return { key, organization: { id: key.organizationId, slug: organization } };
}
