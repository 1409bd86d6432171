/** Limits that count until an instant, over migration 0029 (docs/design/usage.md, Raises). */
import { eq, sql } from "drizzle-orm";
import { limitRaise, organization } from "../../../db/schema.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import type { Raise, RaiseAdministration } from "../../core/store/raise.ts";
import { standingSubjects } from "../../core/store/standing.ts";
import { act, audit, storeNow } from "./acts.ts";
import { budgetOf, budgetShown } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { announceChange } from "./revocations.ts";
import { plainly } from "./rows.ts";
import { uuidOfSubject } from "./standing.ts";

type RaiseRow = typeof limitRaise.$inferSelect;

export function raises(db: Database): RaiseAdministration {
  return {
    async raises(ids) {
      const named = new Map(ids.map((id) => [uuidOfSubject(id), id]));
      if (named.size === 0) return new Map();
      const uuids = sql.param([...named.keys()]);
      const rows = await plainly(
        db.drizzle
          .select()
          .from(limitRaise)
          .where(sql`${limitRaise.subjectId} = any(${uuids}::uuid[]) and ${limitRaise.endsAt} > store_now()`),
      );
      return new Map(rows.map((row) => [named.get(row.subjectId)!, raiseOf(row)]));
    },

    setRaise: (subject, raise, actor) =>
      act(db, async (tx) => {
        const owner = bare(subject.organizationId, "org_");
        const [row] = await tx.drizzle
          .select({ status: organization.status })
          .from(organization)
          .where(eq(organization.id, owner))
          .for("no key update");
        if (!row || row.status === "closed") return "closed";
        const at = await storeNow(tx);
        const id = uuidOfSubject(subject.id);
        const before = await inForce(tx, id, at);
        if (raise === null && before === null) return "none";
        if (raise && raise.until <= at) return "past";
        await tx.drizzle.delete(limitRaise).where(eq(limitRaise.subjectId, id));
        if (raise) {
          const { limits, until: endsAt } = raise;
          const set = { ...limits, endsAt, setAt: at, setBy: actor };
          await tx.drizzle.insert(limitRaise).values({ subjectId: id, organizationId: owner, ...set });
          const raisedUntil = sql`greatest(${organization.raisedUntil}, ${endsAt.toISOString()}::timestamptz)`;
          await tx.drizzle.update(organization).set({ raisedUntil }).where(eq(organization.id, owner));
        }
        await tx.query("select usage_limits_changed($1)", [id]);
        await announceChange(tx, subject.subject === "key" ? subject.id : subject.organizationId);
        const details = { raise: raise && listed(raise), before: before && listed(before) };
        const action = `${subject.subject}.raise`;
        await audit(tx, at, { actor, action, owner, subject: subject.audited, details });
        return raise ? { ...raise, setAt: at, setBy: actor } : "ended";
      }),

    async memberId(organizationId, personId) {
      const [row] = await db.query<{ id: string }>("select usage_member($1, $2) as id", [
        bare(organizationId, "org_"),
        bare(personId, "per_"),
      ]);
      return idOf(row!.id, standingSubjects.person);
    },
  };
}

async function inForce(tx: Transaction, id: string, at: Date): Promise<Raise | null> {
  const [row] = await tx.drizzle.select().from(limitRaise).where(eq(limitRaise.subjectId, id));
  return row && row.endsAt > at ? raiseOf(row) : null;
}

const raiseOf = (row: RaiseRow): Raise => ({
  limits: budgetOf(row),
  until: row.endsAt,
  setAt: row.setAt,
  setBy: row.setBy,
});

const listed = ({ limits, until }: Pick<Raise, "limits" | "until">) => ({
  limits: budgetShown(limits),
  until: until.toISOString(),
});
