// Creates an API key for each round, so that the round's ledger records can be found by the key.

import { key_random_bytes, newKey, secretOf } from "../../src/core/auth/credential.ts";
import { scopes } from "../../src/core/store/directory.ts";
import { bare, idOf } from "../../src/core/store/ids.ts";
import { keys } from "../../src/stores/postgres/keys.ts";
import { unrestricted } from "../core/store/new-key.ts";
import type { Rig } from "./rig.ts";
import { ask } from "./stores.ts";

export interface RoundKey {
  key: string;
  /** The key's UUID. */
  id: string;
}

export async function roundKeys(rig: Rig, organization: string, count: number): Promise<RoundKey[]> {
  const { id: organizationId } = await rig.command<{ id: string }>("org", "show", organization);
  return ask(rig.postgres.port, async (db) => {
    const made = [];
    for (let number = 0; number < count; number++) {
      const id = idOf(Bun.randomUUIDv7(), "key_");
      const key = newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)));
      await keys(db).createKey({
        ...{ ...unrestricted, id, organizationId, name: `round ${number}` },
        ...{ scopes: [...scopes], secret: secretOf(key), actor: "cli:faults" },
      });
      made.push({ key, id: bare(id, "key_") });
    }
    return made;
  });
}
