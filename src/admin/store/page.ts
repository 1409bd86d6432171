/** Types for pages of lists, and for requests that create something and may be sent again. */

/** A page of a list: at most `limit` items, after the one with the id `after`. */
export interface Page {
  after?: string | undefined;
  limit: number;
}
/** Filters a list: only subjects that have used at least this percentage of a window's limit. */
export interface OverShare {
  overPercent?: number | undefined;
}
export interface PageOf<Item> {
  items: Item[];
  hasMore: boolean;
}

/** The identity of a request that creates something, by which its repeat is recognised: two SHA-256 hashes. */
export interface Repeat {
  keyHash: Uint8Array;
  requestHash: Uint8Array;
}
/**
 * `repeated`: the creation is a repeat, with the id of the object that was created the first time. `reused`: another
 * request came with the same idempotency key.
 */
export type Repeated = { repeated: string } | "reused";
