/**
 * THE CHAIN OF THE AUDIT LOG: each entry's hash covers the entry and the hash before it, so that whoever keeps one hash
 * can tell later that nothing before it was changed, left out or put in. Pure.
 */
import type { AuditEntry, AuditHead } from "./directory.ts";

/** The hash that stands before the first entry. */
export const chainBeginning = "0".repeat(64);

/** An entry as it is shown and exported; all but `hash` is what the hash covers. */
export function auditShown(entry: AuditEntry) {
  return { ...covered(entry), hash: entry.hash };
}

export type AuditLine = ReturnType<typeof auditShown>;

function covered({ number, at, actor, address, action, organizationId, subject, details }: Omit<AuditEntry, "hash">) {
  return {
    number,
    at: at.toISOString(),
    ...{ actor, address, action },
    organization_id: organizationId,
    ...{ subject, details },
  };
}

/** The hash of an entry that comes after one with this hash. */
export function chainedHash(previous: string, entry: Omit<AuditEntry, "hash">): string {
  return hashAfter(previous, covered(entry));
}

/**
 * Finds where the chain of these lines breaks. The lines are in the order of their numbers, and `previous` is the head
 * before the first of them. An entry without a hash was written before there was a chain.
 */
export function chainBreak(previous: AuditHead, lines: readonly AuditLine[]): { head: AuditHead } | { broken: string } {
  let head = previous;
  for (const line of lines) {
    const { hash, ...rest } = line;
    if (line.number !== head.number + 1) return { broken: `entry ${head.number + 1} is missing` };
    if (hash === null && head.hash === chainBeginning) {
      head = { number: line.number, hash: chainBeginning };
      continue;
    }
    if (hash !== hashAfter(head.hash, rest)) {
      return { broken: `entry ${line.number}, or one before it, is not what was written` };
    }
    head = { number: line.number, hash };
  }
  return { head };
}

function hashAfter(previous: string, line: Omit<AuditLine, "hash">): string {
  return (Bun.SHA256.hash(`${previous}\n${canonical(line)}`) as Uint8Array).toHex();
}

/** JSON with the members of every object in the order of their names: what stores and languages change is not in it. */
export function canonical(value: unknown): string {
  if (value instanceof Date) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  const inOrder = members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${inOrder.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(",")}}`;
}
