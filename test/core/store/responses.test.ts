// Responses that can be continued, on both kinds of database.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { idOf } from "../../../src/core/store/ids.ts";
import type { KeptResponse, ResponseStore } from "../../../src/features/responses/store/responses.ts";
import { keptResponses } from "../../../src/stores/postgres/responses.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { ledgerForTests } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const mebibyte = 1024 * 1024;
const newId = () => idOf(Bun.randomUUIDv7(), "resp_");
const newOrganization = () => idOf(Bun.randomUUIDv7(), "org_");
const by = (organizationId: string) => ({ organizationId, keyId: idOf(Bun.randomUUIDv7(), "key_") });
/** A caller whose key belongs to no person. */
const every = (organizationId: string) => ({ organizationId, personId: null });
/** The id of a response made at this instant. */
const idAt = (at: Date) => {
  const hex = at.getTime().toString(16).padStart(12, "0");
  return `resp_${hex}${newId().slice("resp_".length + 12)}`;
};
const response = (change: Partial<KeptResponse> = {}): KeptResponse => ({
  id: newId(),
  previousId: null,
  input: '[{"type":"message","content":"zero \\u0000, half a pair \\ud800, 水"}]',
  output: '[{"type":"message"}]',
  response: '{"object":"response"}',
  ...change,
});
const turnOf = ({ response: _, ...turn }: KeptResponse) => turn;

describe.each(databaseKinds(import.meta.path))("kept responses on %s", (name) => {
  const { store: owned } = ledgerForTests(name, { isBalanced: false });
  let store: ResponseStore;
  let days = 30;
  beforeAll(() => {
    store = keptResponses(owned.db, { kept_days: () => days });
  });

  async function chain(owner: string, length: number, change: Partial<KeptResponse> = {}): Promise<KeptResponse[]> {
    const all: KeptResponse[] = [];
    for (let index = 0; index < length; index++) {
      all.push(response({ previousId: all.at(-1)?.id ?? null, input: `["${index}"]`, ...change }));
      expect(await store.keep(by(owner), all.at(-1)!, mebibyte)).toBeTrue();
    }
    return all;
  }
  const total = async (owner: string) => {
    const rows = await owned.db.query<{ said: number; is: number }>(
      `select t.bytes as said, coalesce((select sum(k.bytes) from kept_response k where k.organization_id = t.organization_id), 0)::bigint as is
       from kept_response_total t where t.organization_id = $1`,
      [owner.slice("org_".length)],
    );
    expect(rows.map(({ said }) => said)).toEqual(rows.map(({ is }) => is));
    return rows[0]?.said ?? 0;
  };

  test("one is found as it was, whatever its text holds, and by its own organization alone", async () => {
    const [owner, other] = [newOrganization(), newOrganization()];
    const one = response();
    expect(await store.keep(by(owner), one, mebibyte)).toBeTrue();
    expect(await store.find(every(owner), one.id)).toEqual(one);
    expect(await store.conversation(every(owner), one.id, mebibyte)).toEqual([turnOf(one)]);
    expect(await store.find(every(other), one.id)).toBeNull();
    expect(await store.conversation(every(other), one.id, mebibyte)).toBe("not_found");
    expect(await store.turns(every(other), [one.id], { inputs: true, bytes_max: mebibyte })).toEqual([]);
    expect(await store.remove(every(other), one.id)).toBeFalse();
    for (const strange of ["", "resp_", "resp_x", `resp_${"g".repeat(32)}`, newId(), one.id.toUpperCase()]) {
      expect(await store.find(every(owner), strange)).toBeNull();
      expect(await store.conversation(every(owner), strange, mebibyte)).toBe("not_found");
      expect(await store.remove(every(owner), strange)).toBeFalse();
    }
  });

  test("a conversation that begins in another organization is not found", async () => {
    const [owner, other] = [newOrganization(), newOrganization()];
    const [first] = await chain(owner, 1);
    const foreign = response({ previousId: first!.id });
    await store.keep(by(other), foreign, mebibyte);
    expect(await store.conversation(every(other), foreign.id, mebibyte)).toBe("not_found");
  });

  test("one that is longer than may be read is not read", async () => {
    const owner = newOrganization();
    const all = await chain(owner, 4, { input: `["${"x".repeat(1000)}"]`, output: "[]", response: "{}" });
    const last = all.at(-1)!.id;
    expect(await store.conversation(every(owner), last, 4 * 1008)).toHaveLength(4);
    expect(await store.conversation(every(owner), last, 4 * 1008 - 1)).toBe("too_long");
    expect(await store.conversation(every(owner), last, 10)).toBe("too_long");
  });

  test("turns are found by their ids, with their inputs where they are asked for", async () => {
    const owner = newOrganization();
    const [first, second] = await chain(owner, 2);
    const ids = [second!.id, first!.id, first!.id, newId(), "no id"];
    const found = await store.turns(every(owner), ids, { inputs: true, bytes_max: mebibyte });
    expect(found).toHaveLength(2);
    expect(found).toContainEqual(turnOf(first!));
    const outputs = await store.turns(every(owner), ids, { inputs: false, bytes_max: mebibyte });
    expect(outputs).toContainEqual({ ...turnOf(second!), input: "[]" });
    expect(await store.turns(every(owner), ids, { inputs: true, bytes_max: 30 })).toBe("too_long");
    expect(await store.turns(every(owner), [], { inputs: true, bytes_max: 30 })).toEqual([]);
  });

  test("sent twice it counts once", async () => {
    const owner = newOrganization();
    const one = response();
    await Promise.all([store.keep(by(owner), one, mebibyte), store.keep(by(owner), one, mebibyte)]);
    const bytes = Buffer.byteLength(one.input + one.output + one.response);
    expect(await total(owner)).toBe(bytes);
    await store.remove(every(owner), one.id);
    expect(await total(owner)).toBe(0);
  });

  test("the oldest make room; what alone is too large is not kept; others lose nothing", async () => {
    const [owner, other] = [newOrganization(), newOrganization()];
    const size = (count: number) => ({ input: `["${"x".repeat(count - 8)}"]`, output: "[]", response: "{}" });
    const theirs = response(size(900));
    await store.keep(by(other), theirs, 1000);
    const all = Array.from({ length: 10 }, () => response(size(100)));
    for (const one of all) await store.keep(by(owner), one, 1000);
    expect(await total(owner)).toBe(1000);
    const large = response(size(350));
    expect(await store.keep(by(owner), large, 1000)).toBeTrue();
    expect(await total(owner)).toBe(950);
    const left = await Promise.all(all.map(({ id }) => store.find(every(owner), id)));
    expect(left.map((one) => one !== null)).toEqual([...Array(4).fill(false), ...Array(6).fill(true)]);
    expect(await store.keep(by(owner), response(size(1001)), 1000)).toBeFalse();
    expect(await total(owner)).toBe(950);
    expect(await store.find(every(other), theirs.id)).toEqual(theirs);
  });

  test("many that come and go at once add up", async () => {
    const owner = newOrganization();
    const all = Array.from({ length: 60 }, () => response());
    const bytes = Buffer.byteLength(all[0]!.input + all[0]!.output + all[0]!.response);
    await Promise.all([
      ...all.map((one) => store.keep(by(owner), one, 20 * bytes)),
      ...all.slice(0, 20).map(({ id }) => store.remove(every(owner), id)),
      store.forget(),
    ]);
    expect(await total(owner)).toBeLessThanOrEqual(20 * bytes);
  });

  test("after their days they are found no more, a day later they are gone; others stay", async () => {
    const owner = newOrganization();
    const at = new Date("2026-10-01T00:00:00Z");
    const later = (days: number, ms = 0) => new Date(at.getTime() + days * 86_400_000 + ms);
    try {
      await owned.setClock(at);
      const old = response({ id: idAt(at) });
      await store.keep(by(owner), old, mebibyte);
      await owned.setClock(later(20));
      const young = response({ id: idAt(later(20)), previousId: old.id });
      await store.keep(by(owner), young, mebibyte);
      expect(await store.conversation(every(owner), young.id, mebibyte)).toHaveLength(2);
      await owned.setClock(later(30, -1));
      expect(await store.find(every(owner), old.id)).not.toBeNull();
      await owned.setClock(later(30));
      expect(await store.find(every(owner), old.id)).toBeNull();
      expect(await store.conversation(every(owner), young.id, mebibyte)).toBe("not_found");
      expect(await store.turns(every(owner), [old.id], { inputs: true, bytes_max: mebibyte })).toEqual([]);
      const size = await total(owner);
      await owned.setClock(later(31, 1000));
      while (await store.forget());
      expect(await total(owner)).toBe(size / 2);
      expect(await store.find(every(owner), young.id)).toEqual(young);
      days = 5;
      expect(await store.find(every(owner), young.id)).toBeNull();
    } finally {
      days = 30;
      await owned.setClock(null);
    }
  });

  test("the oldest are forgotten first, of all organizations", async () => {
    const [first, second] = [newOrganization(), newOrganization()];
    const at = (minute: number) => new Date(Date.UTC(2026, 8, 1, 0, minute));
    const all = [first, second, second, first].map((owner, minute) => ({ owner, id: idAt(at(minute)) }));
    for (const { owner, id } of all) await store.keep(by(owner), response({ id }), mebibyte);
    const left = async () => {
      const rows = await owned.db.query<{ id: string }>(
        "select id from kept_response where organization_id = any($1::uuid[]) order by id",
        [[first, second].map((owner) => owner.slice("org_".length))],
      );
      return rows.map(({ id }) => `resp_${id.replaceAll("-", "")}`);
    };
    for (let gone = 1; gone <= all.length; gone++) {
      await owned.db.query("select kept_response_forget(usage_record_id($1), 1)", [at(60)]);
      expect(await left()).toEqual(all.slice(gone).map(({ id }) => id));
    }
  });
});
