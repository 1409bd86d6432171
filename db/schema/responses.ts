/** Responses that are kept, to be continued, and answers that are kept, to be read again. */
import { boolean, index, integer, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { bytes, instant, units } from "./columns.ts";

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

/** Answers that can be read again, and the claims of idempotency keys. */
export const keptAnswer = pgTable(
  "kept_answer",
  {
    requestId: uuid("request_id").primaryKey(),
    organizationId: uuid("organization_id").notNull(),
    claim: bytes("claim").unique(),
    body: bytes("body"),
    responseId: uuid("response_id").unique(),
    state: text("state").notNull().default("open"),
    bytes: units("bytes").notNull().default(0),
    response: text("response"),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [index("kept_answer_of_organization").on(table.organizationId, table.requestId)],
);

export const keptAnswerEntry = pgTable(
  "kept_answer_entry",
  {
    requestId: uuid("request_id").notNull(),
    number: integer("number").notNull(),
    said: text("said").notNull(),
    isEnd: boolean("is_end").notNull(),
  },
  (table) => [primaryKey({ columns: [table.requestId, table.number] })],
);

/** The parts of receipts that the ledger doesn't have. */
export const answerNote = pgTable("answer_note", {
  requestId: uuid("request_id").primaryKey(),
  organizationId: uuid("organization_id").notNull(),
  detached: boolean("detached").notNull().default(false),
  replayOf: uuid("replay_of"),
  keyId: uuid("key_id"),
  operation: text("operation"),
  model: text("model"),
  stream: boolean("stream"),
  notedAt: instant("noted_at").notNull(),
});
