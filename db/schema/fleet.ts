/** The processes that serve. */
import { jsonb, pgTable, primaryKey, smallint, text, uuid } from "drizzle-orm/pg-core";
import type { ReportDetails } from "../../src/store/fleet.ts";
import { instant } from "./columns.ts";

export const fleetProcess = pgTable(
  "fleet_process",
  {
    nodeId: uuid("node_id").notNull(),
    worker: smallint("worker").notNull(),
    name: text("name").notNull(),
    version: text("version").notNull(),
    configuration: text("configuration").notNull(),
    startedAt: instant("started_at").notNull(),
    reportedAt: instant("reported_at").notNull(),
    report: jsonb("report").$type<ReportDetails>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.nodeId, table.worker] })],
);
