/** Who did what. */
import type { ItemOf } from "../core/client.ts";
import { grouped, shortId, wordsOf } from "../core/format.ts";
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
            { head: "To", cell: ({ subject }) => <Subject of={subject} /> },
            { head: "Details", cell: ({ details }) => <span class="anywhere">{detailsOf(details)}</span> },
          ]}
        />
      )}
    </List>
  );
}

/** An ID is long and says nothing by its beginning. */
function Subject({ of }: { of: string }) {
  const isId = /^[a-z]+_[0-9a-f]{32}$/.test(of);
  return (
    <code class={isId ? "nowrap" : "anywhere"} title={of}>
      {isId ? `${of.slice(0, of.indexOf("_") + 1)}${shortId(of)}` : of}
    </code>
  );
}

/** `limits: week 5000, owner: ann`; what is null or empty is left out. */
export function detailsOf(details: unknown): string {
  return membersOf(details)
    .map(([name, value]) => `${wordsOf(name)}: ${inWords(value)}`)
    .join(", ");
}

function membersOf(value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null) return [];
  const isEmpty = (one: unknown) => one === null || (typeof one === "object" && Object.keys(one).length === 0);
  return Object.entries(value).filter(([, one]) => !isEmpty(one));
}

function inWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(inWords).join(" ");
  if (typeof value === "object" && value !== null)
    return membersOf(value)
      .map(([name, one]) => `${wordsOf(name)} ${inWords(one)}`)
      .join(" ");
  return typeof value === "number" ? grouped(value) : String(value);
}
