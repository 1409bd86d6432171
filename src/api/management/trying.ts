/** Finds the key as which a caller of management tries a model (try-model.ts). */
import type { Principal } from "../../auth/verdict.ts";
import type { Caller } from "../../management/caller.ts";

export interface Trying {
  /** The key with this ID; null: the caller's own, who is a person with a membership. Throws Fault. */
  principalFor(caller: Caller, keyId: string | null, address: string): Promise<Principal>;
}
