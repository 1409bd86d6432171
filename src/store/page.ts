/** Lists in parts, and creations that are asked for again. */

/** A part of a list: so many, after the one with this id. */
export interface Page {
  after?: string | undefined;
  limit: number;
}
export interface PageOf<Item> {
  items: Item[];
  hasMore: boolean;
}

/** The identity of a creation, by which a repeat of it is recognized: two SHA-256 hashes. */
export interface Repeat {
  keyHash: Uint8Array;
  requestHash: Uint8Array;
}
/** It was asked for before: the id of what was made then; or another thing was asked for under the same key. */
export type Repeated = { repeated: string } | "reused";
