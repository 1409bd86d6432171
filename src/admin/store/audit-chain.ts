/**
 * THE CHAIN OF THE AUDIT LOG: the hash of each entry covers the entry and the previous entry's hash. Anybody who keeps
 * one hash can verify later that no earlier entry was changed, removed or inserted. Pure.
 */
import type { AuditEntry, AuditHead } from "./administration.ts";

/** The value that stands for a previous hash in the hash of the first entry. */
export const chainBeginning = "0".repeat(64);

/** An entry in the form in which it is shown and exported. The hash covers all members of this form but `hash`. */
export function auditShown(entry: AuditEntry) {
  return { ...covered(entry), hash: entry.hash };
}

export type AuditLine = ReturnType<typeof auditShown>;

function covered({ number, at, actor, address, action, organizationId, subject, details }: Omit<AuditEntry, "hash">) {
  return {
    number,
    at: at.toISOString(),
    actor,
    address,
    action,
    organization_id: organizationId,
    subject,
    details,
  };
}

/** The hash of this entry. `previous`: the hash of the entry before it. */
export function chainedHash(previous: string, entry: Omit<AuditEntry, "hash">): string {
  return hashAfter(previous, covered(entry));
}

/**
 * Finds the entry at which the chain of these lines breaks; if none, returns the new head. The lines are in the order
 * of their numbers. `previous`: number and hash of the entry before the first line. An entry without a hash was written
 * before the chain was introduced.
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

/** JSON with the members of every object sorted by name, so that every store and language writes the same text. */
export function canonical(value: unknown): string {
  if (value instanceof Date) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  const inOrder = members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${inOrder.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(",")}}`;
}
