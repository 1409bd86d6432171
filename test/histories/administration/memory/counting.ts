// The statement of src/stores/postgres/own-limits.ts that reads what counts for a person, on the tables in memory.

import type { CountingLimits } from "../../../../src/admin/store/own-limits.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { raisedTo } from "../../../../src/core/store/raise.ts";
import { memberId, type Reading, teamOf } from "./tables.ts";

const names = [
  "session",
  "week",
  "month",
  "concurrentRequests",
  "requestsPerMinute",
  "tokensPerMinute",
] as const satisfies readonly (keyof Budget)[];

export function countingRows(of: Reading, organizationId: string, personId: string): CountingLimits[] {
  const team = teamOf(of, organizationId, personId);
  const row = (entrance: string, place: CountingLimits["place"], subject: string) =>
    rowOf(of, { entrance, place, team: place === "team" ? subject : null }, subject);
  const rows = [row("all", "person", memberId(organizationId, personId))];
  if (team) rows.push(row("new", "team", team.id));
  for (const { id, personId: holder, organizationId: owner, revokedAt } of of.all("keys")) {
    if (holder !== personId || owner !== organizationId || revokedAt) continue;
    rows.push(row(id, "key", id));
    const { teamId = null } = of.get("subjects", id) ?? {};
    if (teamId !== null) rows.push(row(id, "team", teamId));
  }
  const given = (team && of.get("keyDefaults", team.id)) ?? of.get("keyDefaults", organizationId);
  if (!given) return rows;
  const limits = names.map((name) => given[name]);
  return [...rows, { entrance: "new", place: "key", team: null, limits, raised: limits, raisedUntil: null }];
}

function rowOf(
  of: Reading,
  head: Pick<CountingLimits, "entrance" | "place" | "team">,
  subject: string,
): CountingLimits {
  const budget = of.get("subjects", subject)?.budget;
  const set = of.get("raises", subject);
  const raise = set && set.until > of.now ? set : null;
  return {
    ...head,
    limits: names.map((name) => budget?.[name] ?? null),
    raised: names.map((name) => raisedTo(budget?.[name] ?? null, raise?.limits[name])),
    raisedUntil: raise?.until ?? null,
  };
}
