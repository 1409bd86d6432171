/** Lists in parts: so many at a time, and where the next part begins. Pure. */

import { type IdPrefix, uuidOf } from "../store/ids.ts";
import type { PageOf } from "../store/page.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

export interface PageInput {
  /** 1 to 1,000, else 100. */
  limit?: number | null;
  /** What the part before said of the next one; absent: the first part. */
  cursor?: string | null;
}

export interface Paged<Item> {
  items: Item[];
  /** The cursor of the next part; null: this was the last. */
  next: string | null;
}

export const page_max = 1000;
const page_default = 100;

export function limitOf({ limit }: PageInput): number {
  return parse.count(limit ?? page_default, page_max, "The limit");
}

/** The cursor of a list in the order of ids is the last id that was shown: it stays right whatever comes or goes. */
export function pageOf(input: PageInput, prefix: IdPrefix): { limit: number; after: string | undefined } {
  const limit = limitOf(input);
  if (parse.isAbsent(input.cursor)) return { limit, after: undefined };
  const after = parse.text(input.cursor, "a cursor");
  return uuidOf(after, prefix) === null ? noCursor(after) : { limit, after };
}

/** Of a list in the order of numbers. */
export function numberIn(input: PageInput): number | undefined {
  if (parse.isAbsent(input.cursor)) return undefined;
  const cursor = parse.text(input.cursor, "a cursor");
  return /^\d{1,15}$/.test(cursor) ? Number(cursor) : noCursor(cursor);
}

function noCursor(text: string): never {
  return fail(`'${parse.excerpt(text)}' is not a cursor of this list. Use the 'next_cursor' of the part before.`);
}

export function paged<Item>({ items, hasMore }: PageOf<Item>, cursorOf: (item: Item) => string): Paged<Item> {
  const last = items.at(-1);
  return { items, next: hasMore && last !== undefined ? cursorOf(last) : null };
}

/** All parts of a list. */
export async function allPages<Item>(part: (page: PageInput) => Promise<Paged<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const page: Paged<Item> = await part({ limit: page_max, cursor });
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return items;
}
