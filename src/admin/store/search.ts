/** Finds organizations, teams, people and keys by a part of their names, or by the beginning of an ID. Implemented by `postgres`. */

export const searchedKinds = ["organization", "team", "person", "key"] as const;
export type SearchedKind = (typeof searchedKinds)[number];

export interface SearchQuery {
  text: string;
  kinds: readonly SearchedKind[];
  /** Only things in this organization; absent: in any. */
  organizationId?: string | undefined;
  /** Only keys of this person; absent: of anybody. */
  personId?: string | undefined;
  limit: number;
}

export interface FoundThing {
  kind: SearchedKind;
  id: string;
  name: string;
  /** The slug of the thing's organization; null for a person, who may be in several. */
  organization: string | null;
  /** The text that tells the thing from others of the same name: a slug, an e-mail address, whose key it is. */
  detail: string | null;
  rank: Rank;
}

/** How well a name matches: 0: it is the text, or the ID begins with it; 1: it begins with it; 2: it contains it. */
export type Rank = 0 | 1 | 2;

export interface Searching {
  /**
   * Finds things by name or ID. Names that equal the text come first, then those that begin with it, then those that
   * contain it.
   */
  search(query: SearchQuery): Promise<FoundThing[]>;
}
