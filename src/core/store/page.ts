/** Pages of lists, and repeated creations. */

/** A page of a list: at most this many, after the one with this id. */
export interface Page {
  after?: string | undefined;
  limit: number;
}
/** Only what has used this percentage of a window's limit, or more. */
export interface OverShare {
  overPercent?: number | undefined;
}
export interface PageOf<Item> {
  items: Item[];
  hasMore: boolean;
}

/** The identity of a creation, by which a repeat is recognised: two SHA-256 hashes. */
export interface Repeat {
  keyHash: Uint8Array;
  requestHash: Uint8Array;
}
/** `repeated`: the creation is a repeat, with the id of what was created the first time. `reused`: the same key came with something else. */
export type Repeated = { repeated: string } | "reused";
