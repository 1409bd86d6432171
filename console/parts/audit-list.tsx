/** Who did what. */
import type { ItemOf } from "../core/client.ts";
import { List } from "./list.tsx";
import { Table } from "./table.tsx";
import { Time } from "./time.tsx";

type Entry = ItemOf<"pageAudit">;

export function AuditList({ input, cursor }: { input: Record<string, string>; cursor?: string }) {
  return (
    <List
      verb="pageAudit"
      input={input as never}
      {...(cursor ? { cursor } : {})}
      none="Nothing was done yet that fits."
    >
      {(rows) => (
        <Table<Entry>
          caption="Audit log"
          rows={rows}
          keyOf={({ number }) => String(number)}
          columns={[
            { head: "No.", isNumber: true, cell: ({ number }) => number },
            { head: "When", cell: ({ at }) => <Time at={at} /> },
            { head: "Who", cell: ({ actor }) => actor },
            { head: "From", cell: ({ address }) => address ?? "–" },
            { head: "Did", cell: ({ action }) => action },
            { head: "To", cell: ({ subject }) => <code>{subject}</code> },
            { head: "Details", cell: ({ details }) => detailsOf(details) },
          ]}
        />
      )}
    </List>
  );
}

function detailsOf(details: unknown): string {
  if (typeof details !== "object" || details === null) return "";
  return Object.entries(details)
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
