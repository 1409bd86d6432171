// Parts that the acts in memory share, in the order in which src/postgres locks, reads and writes.

import { isDeepStrictEqual } from "node:util";
import { type Budget, noBudget } from "../../../../src/core/store/budget.ts";
import type { MemoryTransaction } from "./memory.ts";
import { memberId, membershipIn, type Reading, type SubjectRow, teamOf } from "./tables.ts";

export const isLimited = (budget: Budget): boolean => Object.values(budget).some((limit) => limit !== null);

/** As the product stores defaults of members: none without a limit. */
export const limitedOnly = (budget: Budget | null) => (budget && isLimited(budget) ? budget : null);

/** The end of an act that wrote something. */
export const audit = (tx: MemoryTransaction): Promise<void> => tx.lock("audit");

/** Notes that limits have changed: the row of the last number is a lock until the commit. */
export const limitsChanged = (tx: MemoryTransaction): Promise<void> => tx.lock("limit changes");

/** As usage_set_subject, and the limits of a minute after it. */
export async function setSubject(tx: MemoryTransaction, subject: Omit<SubjectRow, "personId">): Promise<void> {
  await tx.lock(`ledger ${subject.organizationId}`);
  const { personId = null } = tx.get("subjects", subject.id) ?? {};
  tx.set("subjects", subject.id, { ...subject, personId });
  await limitsChanged(tx);
}

/** As usage_refresh_members: members get the limits that count for them, and one person's keys follow the membership. */
export async function refreshMembers(tx: MemoryTransaction, organizationId: string, person: string | null) {
  await tx.lock(organizationId, "no key update");
  await tx.lock(`ledger ${organizationId}`);
  for (const personId of membersOf(tx, organizationId, person)) {
    const id = memberId(organizationId, personId);
    const budget = memberLimits(tx, organizationId, personId);
    if (isDeepStrictEqual(budget, tx.get("subjects", id)?.budget ?? noBudget)) continue;
    await limitsChanged(tx);
    tx.set("subjects", id, { id, organizationId, teamId: null, personId, budget });
  }
  if (person === null || !membershipIn(tx, organizationId, person)) return;
  const teamId = teamOf(tx, organizationId, person)?.id ?? null;
  for (const { id, personId, organizationId: owner, revokedAt } of tx.all("keys")) {
    const subject = tx.get("subjects", id);
    if (personId !== person || owner !== organizationId || revokedAt || !subject || subject.teamId === teamId) continue;
    await setSubject(tx, { ...subject, teamId });
  }
}

function membersOf(of: Reading, organizationId: string, person: string | null): string[] {
  const known = [...of.all("memberships"), ...of.all("memberLimits"), ...of.all("subjects")]
    .filter((one) => one.organizationId === organizationId)
    .map(({ personId }) => personId);
  return [...new Set(known)].filter((one) => one !== null).filter((one) => person === null || one === person);
}

/** A person's own, else those of the team of the membership, else those of the organization. */
function memberLimits(of: Reading, organizationId: string, personId: string): Budget {
  const team = teamOf(of, organizationId, personId);
  return (
    of.get("memberLimits", memberId(organizationId, personId))?.budget ??
    (team && of.get("memberDefaults", team.id)) ??
    of.get("memberDefaults", organizationId) ??
    noBudget
  );
}
