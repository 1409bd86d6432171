/** Pages of lists ("parts"), each with the cursor of the next page. Pure. */
import type { PageOf } from "../store/page.ts";
import { page_max } from "./shapes.ts";

export interface Part<Item> {
  data: Item[];
  /** The cursor of the next page; null: this page is the last. */
  nextCursor: string | null;
}

/** A page of a list that is sorted by id, with each item mapped by `listed`. */
export function partFrom<Found extends { id: string }>(page: PageOf<Found>): Part<Found>;
export function partFrom<Found extends { id: string }, Item>(
  page: PageOf<Found>,
  listed: (item: Found) => Item,
): Part<Item>;
export function partFrom<Found extends { id: string }>(
  { items, hasMore }: PageOf<Found>,
  listed: (item: Found) => unknown = (item) => item,
): Part<unknown> {
  return { data: items.map(listed), nextCursor: hasMore ? (items.at(-1)?.id ?? null) : null };
}

/**
 * Reads a list page by page: all items, or the first `limit` items from the cursor `begin` on. A page may have fewer
 * items than were requested, so several pages may be read even for a small limit.
 */
export async function allOf<Item>(
  part: (page: { limit: number; cursor?: string }) => Promise<Part<Item>>,
  limit = Number.POSITIVE_INFINITY,
  begin?: string,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null | undefined = begin;
  do {
    const rest = Math.min(page_max, limit - items.length);
    const page: Part<Item> = await part({ limit: rest, ...(cursor === undefined ? {} : { cursor }) });
    items.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null && items.length < limit);
  return items;
}

/** Sorts items by organization, the oldest organization first: IDs sort by the time at which they were made. */
export function byOrganization<Owned extends { organizationId: string }>(items: readonly Owned[]): Owned[] {
  return items.toSorted((one, other) =>
    one.organizationId < other.organizationId ? -1 : Number(one.organizationId > other.organizationId),
  );
}
