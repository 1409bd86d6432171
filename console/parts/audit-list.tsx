/** Entries of the audit log: who did what, and when. */
import type { ItemOf } from "../core/client.ts";
import { moneyTyped } from "../core/form.ts";
import { grouped, shortId, wordsOf } from "../core/format.ts";
import { may } from "../core/session.ts";
import { CommandLine } from "./command-line.tsx";
import { OrganizationLink, ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";
import type { Tab } from "./tabs.tsx";
import { Time } from "./time.tsx";

export type Entry = ItemOf<"pageAudit">;

/** The tab of a thing's page with the audit log of that thing; false for readers who may not see the log. */
export const auditTab = (subject: string): Tab | false =>
  may("pageAudit") && {
    name: "Audit",
    path: "audit",
    shows: () => (
      <Section title="Audit" aside={<a href={`/audit?subject=${subject}`}>With filters</a>}>
        <AuditList input={{ subject }} />
        <CommandLine verb="pageAudit" input={{ subject }} />
      </Section>
    ),
  };

export function AuditList({ input, cursor }: { input: Record<string, string>; cursor?: string }) {
  return (
    <List verb="pageAudit" input={input as never} cursor={cursor} none="Nothing was done yet that fits.">
      {(rows) => (
        <Table<Entry>
          caption="Audit log"
          rows={rows}
          keyOf={({ number }) => String(number)}
          columns={[
            { head: "No.", isNumber: true, isMinor: true, cell: ({ number }) => number },
            { head: "When", cell: ({ at }) => <Time at={at} /> },
            { head: "Who", cell: (entry) => <Actor of={entry} /> },
            { head: "From", isMinor: true, cell: ({ address }) => address ?? "–" },
            { head: "Action", cell: ({ action }) => action },
            { head: "Target", cell: (entry) => <Target of={entry} /> },
            { head: "Details", cell: (entry) => <span class="anywhere">{detailsOf(entry)}</span> },
          ]}
        />
      )}
    </List>
  );
}

const ofPerson = "person:";

export function Actor({ of: { actor, actor_name } }: { of: Entry }) {
  if (!actor.startsWith(ofPerson)) return <>{actor}</>;
  return <ThingLink kind="person" id={actor.slice(ofPerson.length)} name={actor_name} />;
}

const kinds = { key: "key", team: "team", per: "person" } as const;

/**
 * The target's name, linked to its page. IDs are shortened to their end, since they are long and do not differ in their
 * beginnings.
 */
function Target({ of: { subject, subject_name } }: { of: Entry }) {
  const [, prefix] = /^([a-z]+)_[0-9a-f]{32}$/.exec(subject) ?? [];
  const kind = kinds[prefix as keyof typeof kinds];
  if (kind) return <ThingLink kind={kind} id={subject} name={subject_name} />;
  if (prefix === "org" && subject_name !== null) return <OrganizationLink slug={subject_name} />;
  if (subject_name !== null) return <span title={subject}>{subject_name}</span>;
  return (
    <code class={prefix ? "nowrap" : "anywhere"} title={subject}>
      {prefix ? `${prefix}_${shortId(subject)}` : subject}
    </code>
  );
}

/**
 * The details in words: `limits: week 5000, owner: ann`; null and empty values are left out, and IDs are replaced by
 * names if known.
 */
export function detailsOf({ details, names }: Pick<Entry, "details" | "names">): string {
  return membersOf(details)
    .map(([name, value]) => [titleOf(name), inWords(value, names)])
    .filter(([, words]) => words !== "")
    .map(([name, words]) => `${name}: ${words}`)
    .join(", ");
}

/** The title of a detail, without `_id`, because its value is shown as a name if there is one. */
const titleOf = (name: string) => wordsOf(name.replace(/_id$/, ""));

function membersOf(value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null) return [];
  const isEmpty = (one: unknown) => one === null || (typeof one === "object" && Object.keys(one).length === 0);
  return Object.entries(value).filter(([, one]) => !isEmpty(one));
}

function inWords(value: unknown, names: Entry["names"]): string {
  if (Array.isArray(value)) return value.map((one) => inWords(one, names)).join(" ");
  if (typeof value === "object" && value !== null)
    return membersOf(value)
      .map(([name, one]) => `${titleOf(name)} ${inWords(one, names)}`)
      .join(" ");
  if (typeof value === "string" && /^\d+[.]\d{9}$/.test(value)) return moneyTyped({ amount: value });
  if (typeof value === "number") return grouped(value);
  return String(value).replaceAll(
    /\b([a-z]+_)([0-9a-f]{32})\b/g,
    (id, kind, rest) => names[id] ?? kind + shortId(rest),
  );
}
