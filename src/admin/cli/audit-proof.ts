/**
 * Verifies the hash chain of audit entries, page by page, against heads that somebody kept. A head is the number and
 * hash of one entry. Pure.
 */
import { InvalidArgumentError } from "commander";
import type { AuditHead } from "../store/administration.ts";
import { type AuditLine, chainBeginning, chainBreak } from "../store/audit-chain.ts";

export interface VerifyOptions {
  from?: AuditHead;
  to?: AuditHead;
  file?: string;
}

/** The text of a head (the number and hash of an entry), which people keep: `120:9f2c…`. */
export function headText({ number, hash }: AuditHead): string {
  return `${number}:${hash}`;
}

export function headOf(text: string): AuditHead {
  const [, number, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (number === undefined || hash === undefined) {
    throw new InvalidArgumentError("Specify a head as 'sluice audit head' prints it.");
  }
  return { number: Number(number), hash };
}

export interface Proof {
  /** The proof needs the entries after the entry with this number. */
  first: number;
  /** Verifies the next entries. Throws an Error if their chain is broken. */
  take(lines: readonly AuditLine[]): void;
  /** Ends the proof. Throws an Error if the chain ends before a head that was kept. */
  end(): { entries: number; head: AuditHead };
}

export function proofOf({ from, to, file }: VerifyOptions): Proof {
  if (from && to && to.number < from.number) throw new Error("The head after --to is before the one after --from.");
  let head: AuditHead | null = from ?? (file === undefined ? { number: 0, hash: chainBeginning } : null);
  let entries = 0;
  const meets = (at: AuditHead) => {
    if (to && at.number === to.number && at.hash !== to.hash)
      throw broken(`the head ${headText(to)} is not of this log`);
  };
  return {
    first: from?.number ?? 0,
    take(lines) {
      const wanted = lines.filter(({ number }) => number > (from?.number ?? 0) && number <= (to?.number ?? number));
      const [line, ...rest] = wanted;
      if (!line) return;
      // A file may begin anywhere in the log. Without a kept head, its first entry cannot be verified.
      const following = head ? wanted : rest;
      const before = head ?? { number: line.number, hash: line.hash ?? chainBeginning };
      const checked = chainBreak(before, following);
      if ("broken" in checked) throw broken(checked.broken);
      head = checked.head;
      entries += wanted.length;
      meets(head);
    },
    end() {
      const last = head ?? { number: 0, hash: chainBeginning };
      if (to && last.number !== to.number) throw broken(`it ends at entry ${last.number}, before ${to.number}`);
      meets(last);
      return { entries, head: last };
    },
  };
}

/** The lines of an exported audit log. Throws an Error that names a line that is no entry. */
export function linesIn(text: string): AuditLine[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    try {
      const value = JSON.parse(line) as AuditLine;
      if (typeof value.number === "number" && "hash" in value) return [value];
    } catch {}
    throw new Error(`line ${index + 1} of the file is no entry of an audit log`);
  });
}

function broken(why: string): Error {
  return new Error(`The audit log is not intact: ${why}.`);
}
