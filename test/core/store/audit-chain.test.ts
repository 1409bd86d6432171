/**
 * The hash chain of the audit log: any change, omission or insertion between two saved heads (number and hash of the
 * newest entry) is found; many concurrent writers produce one chain.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { proofOf } from "../../../src/admin/cli/audit-proof.ts";
import type { AuditEntry, AuditHead } from "../../../src/admin/store/administration.ts";
import { type AuditLine, auditShown, chainBeginning, chainedHash } from "../../../src/admin/store/audit-chain.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests } from "../../stores/postgres/databases.ts";

setDefaultTimeout(120_000);

const details = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
const chains = fc.array(details, { minLength: 2, maxLength: 12 }).map((all) => {
  const lines: AuditLine[] = [];
  for (const [index, one] of all.entries()) {
    const entry = {
      ...{ number: index + 1, at: new Date(index), actor: "cli:ann", address: null, action: "organization.plan" },
      ...{ organizationId: null, subject: "org", details: JSON.parse(JSON.stringify(one)) as AuditEntry["details"] },
    };
    const hash = chainedHash(lines.at(-1)?.hash ?? chainBeginning, entry);
    lines.push(auditShown({ ...entry, hash }));
  }
  return lines;
});

const headAt = (lines: AuditLine[], index: number): AuditHead => ({
  number: lines[index]!.number,
  hash: lines[index]!.hash!,
});

function verified(lines: AuditLine[], heads: { from?: AuditHead; to?: AuditHead }) {
  const proof = proofOf(heads);
  proof.take(lines);
  return proof.end();
}

describe("a proof", () => {
  test("holds of what was written, between any two heads, however it is cut, also after a trip through JSON", () => {
    fc.assert(
      fc.property(chains, fc.nat(), fc.nat(), (lines, one, other) => {
        const [first, last] = [one % lines.length, other % lines.length].sort((a, b) => a - b) as [number, number];
        const sent = JSON.parse(JSON.stringify(lines)) as AuditLine[];
        const heads = { from: headAt(lines, first), to: headAt(lines, last) };
        expect(verified(sent, heads)).toEqual({ entries: last - first, head: headAt(lines, last) });
        const proof = proofOf({ to: headAt(lines, last) });
        for (const line of sent) proof.take([line]);
        expect(proof.end().head).toEqual(headAt(lines, last));
      }),
    );
  });

  test("fails when an entry was changed, left out, put in, or moved", () => {
    const harm = fc.constantFrom("actor", "at", "details", "hash", "left out", "put in", "moved", "cut off");
    fc.assert(
      fc.property(chains, harm, fc.nat(), (lines, kind, at) => {
        const to = headAt(lines, lines.length - 1);
        const index = at % (lines.length - 1);
        const line = lines[index]!;
        const spoilt = lines.slice();
        if (kind === "actor") spoilt[index] = { ...line, actor: "cli:eve" };
        else if (kind === "at") spoilt[index] = { ...line, at: new Date(9e9).toISOString() };
        else if (kind === "details") spoilt[index] = { ...line, details: { ...line.details, "but not": true } };
        else if (kind === "hash") spoilt[index] = { ...line, hash: "f".repeat(64) };
        else if (kind === "left out") spoilt.splice(index, 1);
        else if (kind === "put in") spoilt.splice(index, 0, line);
        else if (kind === "moved") spoilt.splice(index, 2, lines[index + 1]!, line);
        else spoilt.pop();
        expect(() => verified(spoilt, { to })).toThrow("not intact");
      }),
    );
  });

  test("fails for a whole new chain, because of the head that was kept", () => {
    fc.assert(
      fc.property(chains, (lines) => {
        const to = headAt(lines, lines.length - 1);
        let previous = chainBeginning;
        const forged = lines.map((line) => {
          const { organization_id, hash: _, at, ...rest } = { ...line, actor: "cli:eve" };
          previous = chainedHash(previous, { ...rest, at: new Date(at), organizationId: organization_id });
          return { ...line, actor: "cli:eve", hash: previous };
        });
        expect(verified(forged, {}).entries).toBe(lines.length);
        expect(() => verified(forged, { to })).toThrow("not intact");
      }),
    );
  });
});

describe.each(databaseKinds(import.meta.path))("on %s", (kind) => {
  const db = databaseForTests(kind);
  test("many writers make one chain without gaps, and those that fail leave none", async () => {
    const stores = ["10.0.0.1", null].map((address) => administration(db, { address }));
    const create = (index: number) =>
      stores[index % 2]!.createOrganization({
        ...{
          id: idOf(Bun.randomUUIDv7(), "org_"),
          slug: `o-${index % 20}`,
          name: "ü — 株",
          plan: "pro",
          actor: "cli:ann",
        },
      });
    // Every second slug is taken already: creating those organizations fails and writes no entry.
    const made = await Promise.all(Array.from({ length: 40 }, (_, index) => create(index)));
    expect(made.filter((one) => one === "slug_taken")).toHaveLength(20);
    const found = made.flatMap((one) => (typeof one === "string" || "repeated" in one ? [] : [one]));
    await Promise.all(
      found.flatMap(({ id }) => [
        stores[0]!.setOrganizationPlan(id, "starter", "cli:bob"),
        stores[1]!.setExtraUsage(id, { enabled: true, capNanos: 7 }, "cli:eve"),
        stores[0]!.setOrganizationStatus(id, "suspended", "cli:ann"),
        stores[0]!.adjustUsage({
          ...{ organizationId: id, nanos: 5, reason: "test", actor: "cli:bob" },
          entries: (["week", "month"] as const).map((kind) => ({ entryId: idOf(Bun.randomUUIDv7(), "req_"), kind })),
        }),
      ]),
    );
    const entries = await stores[0]!.listAudit({ order: "oldest", limit: 1000 });
    expect(entries.map(({ number }) => number)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1));
    expect(new Set(entries.map(({ address }) => address))).toEqual(new Set(["10.0.0.1", null]));
    const head = await stores[0]!.auditHead();
    expect(verified(entries.map(auditShown), { to: head })).toEqual({ entries: 120, head });

    await db.query('update audit_entry set details = details || \'{"plan": "unlimited"}\' where number = 100');
    const spoilt = await stores[0]!.listAudit({ order: "oldest", limit: 1000 });
    expect(() => verified(spoilt.map(auditShown), { to: head })).toThrow("entry 100");
  });
});
