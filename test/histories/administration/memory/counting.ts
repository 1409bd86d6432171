// The limits that count for a person, read from the tables in memory as the statement of src/stores/postgres/own-limits.ts
// reads them.

import { budgetNames, noBudget } from "../../../../src/admin/store/budget.ts";
import type { CountingLimits } from "../../../../src/admin/store/own-limits.ts";
import type { Budget } from "../../../../src/core/store/budget.ts";
import { not_limited, raisedTo } from "../../../../src/core/store/rates.ts";
import { chosen } from "./acts.ts";
import { limitValueOf, memberId, type Reading, teamOf } from "./tables.ts";

type Head = Pick<CountingLimits, "entrance" | "place" | "team">;

export function countingRows(of: Reading, organizationId: string, personId: string): CountingLimits[] {
  const team = teamOf(of, organizationId, personId);
  const rows = (entrance: string, place: CountingLimits["place"], subject: string) =>
    rowsOf(of, { entrance, place, team: place === "team" ? subject : null }, subject);
  const all = rows("all", "person", memberId(organizationId, personId));
  if (team) all.push(...rows("new", "team", team.id));
  for (const { id, personId: holder, organizationId: owner, revokedAt } of of.all("keys")) {
    if (holder !== personId || owner !== organizationId || revokedAt) continue;
    all.push(...rows(id, "key", id));
    const { teamId = null } = of.get("subjects", id) ?? {};
    if (teamId !== null) all.push(...rows(id, "team", teamId));
  }
  const { inForce } = chosen([
    ["team", team ? limitValueOf(of, team.id, "keys") : undefined],
    ["organization", limitValueOf(of, organizationId, "keys")],
  ]);
  const limits = budgetNames.map((name) => inForce[name]);
  const head = { entrance: "new", place: "key", team: null, models: "" } as const;
  return [...all, { ...head, limits, raised: limits, raisedUntil: null }];
}

function rowsOf(of: Reading, head: Head, subject: string): CountingLimits[] {
  const patterns = of
    .all("values")
    .filter(({ subjectId, kind, models }) => subjectId === subject && kind === "own" && models !== "");
  return [
    rowOf(of, head, subject, { models: "", budget: of.get("subjects", subject)?.budget ?? noBudget }),
    ...patterns.map(({ models, limits }) => rowOf(of, head, subject, { models, budget: limits })),
  ];
}

function rowOf(
  of: Reading,
  head: Head,
  subject: string,
  { models, budget }: { models: string; budget: Budget },
): CountingLimits {
  const set = of.get("values", `${subject} raise ${models}`);
  const raise = set?.until && set.until > of.now ? set : null;
  const limits = budgetNames.map((name) => (budget[name] === not_limited ? null : budget[name]));
  return {
    ...head,
    models,
    limits,
    raised: limits.map((limit, place) => raisedTo(limit, raise?.limits[budgetNames[place]!])),
    raisedUntil: raise?.until ?? null,
  };
}
