/** Helpers for rows: ids, pages, and errors without Drizzle's wrapping. Pure. */
import { type Column, type GetColumnData, type SQL, sql } from "drizzle-orm";
import { DrizzleQueryError } from "drizzle-orm/errors";
import type * as schema from "../../../db/schema.ts";
import type { PageOf } from "../../admin/store/page.ts";
import { bare, type IdPrefix, idOf } from "../../core/store/ids.ts";

export type OrganizationRow = typeof schema.organization.$inferSelect;
export type KeyRow = typeof schema.apiKey.$inferSelect;
export type OperatorRow = typeof schema.operator.$inferSelect;

/** The column of a UUID, selected as a public id. */
export const idIn = <Uuid extends Column>(column: Uuid, prefix: IdPrefix) =>
  sql`${column}`.mapWith((uuid: string) => idOf(uuid, prefix)) as SQL<GetColumnData<Uuid>>;

/** The UUID of an id that may be absent. */
export const uuidIfAny = (id: string | null | undefined, prefix: IdPrefix): string | null =>
  id === null || id === undefined ? null : bare(id, prefix);

/** SQL for the public id of a UUID, null for null, for queries in text. Queries of Drizzle use `idIn`. */
export const shownId = (column: string, prefix: IdPrefix) => `'${prefix}' || replace(${column}::text, '-', '')`;

/** Throws the driver's error in place of Drizzle's, whose message contains every parameter, which a log would show. */
export async function unwrapErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof DrizzleQueryError && error.cause ? error.cause : error;
  }
}

/** Makes a page of at most `limit` rows. One row more was read, so that the page can say whether others follow. */
export const pageOf = <Item>(rows: Item[], limit: number): PageOf<Item> => ({
  items: rows.slice(0, limit),
  hasMore: rows.length > limit,
});

/** Reads a page of the rows of a query. */
export async function pageIn<Item>(
  query: { limit(rows: number): Promise<Item[]> },
  limit: number,
): Promise<PageOf<Item>> {
  return pageOf(await unwrapErrors(query.limit(limit + 1)), limit);
}
