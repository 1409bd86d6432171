/** Responses that are kept, to be continued. */
import { index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { instant, units } from "./columns.ts";

export const keptResponse = pgTable(
  "kept_response",
  {
    id: uuid("id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    previousId: uuid("previous_id"),
    createdAt: instant("created_at").notNull(),
    bytes: units("bytes").notNull(),
    input: text("input").notNull(),
    output: text("output").notNull(),
    response: text("response").notNull(),
  },
  (table) => [index("kept_response_by_age").on(table.organizationId, table.id)],
);

export const keptResponseTotal = pgTable("kept_response_total", {
  organizationId: uuid("organization_id").primaryKey(),
  bytes: units("bytes").notNull(),
});
