/** Finds organizations, teams, people and keys by a part of their names, or by the beginning of an ID. Implemented by `postgres`. */

export const searchedKinds = ["organization", "team", "person", "key"] as const;
export type SearchedKind = (typeof searchedKinds)[number];

export interface SearchQuery {
  text: string;
  kinds: readonly SearchedKind[];
  /** Only things in this organization; absent: in any organization. */
  organizationId?: string | undefined;
  /** Only keys of this person; absent: everybody's keys. */
  personId?: string | undefined;
  limit: number;
}

export interface FoundThing {
  kind: SearchedKind;
  id: string;
  name: string;
  /** The slug of the thing's organization; null for a person, who may be in several. */
  organization: string | null;
  /**
   * The text that distinguishes the thing from others of the same name: a slug, an e-mail address, or a key's owner.
   */
  detail: string | null;
  rank: Rank;
}

/**
 * The rank of a match: 0: the name equals the text, or the ID begins with the text; 1: the name begins with the text;
 * 2: the name contains it.
 */
export type Rank = 0 | 1 | 2;

export interface Searching {
  /**
   * Finds things by name or ID. Names that equal the text come first, then names that begin with it, then names that
   * contain it.
   */
  search(query: SearchQuery): Promise<FoundThing[]>;
}
