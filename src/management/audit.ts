/** What an administrator reads in the audit log. */
import type { AuditEntry, AuditHead } from "../store/directory.ts";
import type { ManagementContext } from "./context.ts";
import { limitOf, numberIn, type Paged, type PageInput } from "./page.ts";
import * as parse from "./parse.ts";

export interface AuditVerbs {
  /** Newest first; `limit` 1 to 1,000, else 50. */
  listAudit(input: { organization?: string | null; limit?: number | null }): Promise<AuditEntry[]>;
  /** A part of it; `order` is `newest` (first), unless it says `oldest`. The cursor is the number of an entry. */
  pageAudit(
    input: PageInput & {
      organization?: string | null;
      actor?: string | null;
      action?: string | null;
      order?: string | null;
    },
  ): Promise<Paged<AuditEntry>>;
  /** Where the chain of the log stands; whoever keeps it can tell later that nothing before it was changed. */
  auditHead(): Promise<AuditHead>;
}

export function auditVerbs({ administration, narrowedTo }: ManagementContext): AuditVerbs {
  return {
    async listAudit(input) {
      const limit = parse.count(input.limit ?? 50, 1000, "The number of entries");
      return administration.listAudit({ organizationId: await narrowedTo(input.organization), limit });
    },
    async pageAudit(input) {
      const limit = limitOf(input);
      const order = parse.choice(input.order ?? "newest", ["newest", "oldest"], "order");
      const beyond = numberIn(input);
      const optional = (value: unknown, what: string) => (parse.isAbsent(value) ? undefined : parse.text(value, what));
      const found = await administration.listAudit({
        organizationId: await narrowedTo(input.organization),
        actor: optional(input.actor, "an actor"),
        action: optional(input.action, "an action"),
        ...(order === "oldest" ? { after: beyond } : { before: beyond }),
        order,
        limit: limit + 1,
      });
      const items = found.slice(0, limit);
      return { items, next: found.length > limit ? String(items.at(-1)!.number) : null };
    },
    auditHead: () => administration.auditHead(),
  };
}
