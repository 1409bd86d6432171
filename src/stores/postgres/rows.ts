/** Rows as the store's records: IDs, pages, and the errors of a driver freed from Drizzle's wrapping. Pure. */
import { type Column, type GetColumnData, type SQL, sql } from "drizzle-orm";
import { DrizzleQueryError } from "drizzle-orm/errors";
import type * as schema from "../../../db/schema.ts";
import { type IdPrefix, idOf } from "../../core/store/ids.ts";
import type { PageOf } from "../../core/store/page.ts";

export type OrganizationRow = typeof schema.organization.$inferSelect;
export type KeyRow = typeof schema.apiKey.$inferSelect;
export type OperatorRow = typeof schema.operator.$inferSelect;

/** The column of a UUID as the ID that is shown. */
export const idIn = <Uuid extends Column>(column: Uuid, prefix: IdPrefix) =>
  sql`${column}`.mapWith((uuid: string) => idOf(uuid, prefix)) as SQL<GetColumnData<Uuid>>;
/** The same within SQL that makes JSON. */
export const shownId = (column: string, prefix: IdPrefix) => `'${prefix}' || replace(${column}::text, '-', '')`;

/** Drizzle puts every parameter into its error's message, which a log would show. The error inside says enough. */
export async function unwrapErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof DrizzleQueryError && error.cause ? error.cause : error;
  }
}

/** A page out of the rows, of which one more was read than it may have. */
export const pageOf = <Item>(rows: Item[], limit: number): PageOf<Item> => ({
  items: rows.slice(0, limit),
  hasMore: rows.length > limit,
});
