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

/** What a creation is known by, should it be asked for again: both are SHA-256. */
export interface Repeat {
  keyHash: Uint8Array;
  requestHash: Uint8Array;
}
/** It was asked for before: the id of what was made then; or another thing was asked for under the same key. */
export type Repeated = { repeated: string } | "reused";
