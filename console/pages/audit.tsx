/** The audit log. */
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { AuditList } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { Page } from "../parts/section.tsx";

const filters: readonly Filter[] = [
  { name: "organization", label: "Organization", hint: "all", finds: "organization" },
  { name: "actor", label: "Who", hint: "operator:ann", finds: "person", prefix: "person:" },
  { name: "subject", label: "Target", hint: "ID" },
  { name: "action", label: "Action", hint: "key.revoke" },
  { name: "order", label: "Order", choices: choicesOf("pageAudit", "order"), fallback: "newest" },
];

export function AuditPage() {
  const input = filtersSet(filters);
  return (
    <Page title="Audit" aside="every action, in a chain of hashes">
      <Filters of={filters} />
      <AuditList input={input} />
      <CommandLine verb="pageAudit" input={input} />
    </Page>
  );
}
