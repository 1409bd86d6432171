/** Engines that get no new requests because an operator has drained them. */
import { expect, test } from "bun:test";
import { Drained, type DrainSeen } from "../../../src/core/routing/replicas.ts";

const drain = (upstream: string, replica: string | null): DrainSeen => {
  return { upstream, replica, drainedAt: new Date(0), until: null };
};

test("a drained engine gets nothing at any address, and a drained replica leaves the others in use", () => {
  const drained = new Drained();
  const has = (name: string, address?: string) => drained.has(address === undefined ? { name } : { name, address });
  expect(has("east", "10.0.0.1")).toBe(false);
  drained.set([drain("east", null), drain("west", "10.0.0.1")]);
  expect([has("east"), has("east", "10.0.0.1"), has("east", "10.0.0.2")]).toEqual([true, true, true]);
  expect([has("west"), has("west", "10.0.0.1"), has("west", "10.0.0.2")]).toEqual([false, true, false]);
  expect(has("north", "10.0.0.1")).toBe(false);
});

test("what is drained has changed if an engine came or went, and not if only its times are others", () => {
  const drained = new Drained();
  const identities = new Set([drained.identity]);
  expect(drained.set([])).toBe(false);
  for (const all of [[drain("east", null)], [drain("east", null), drain("west", null)], [drain("west", null)]]) {
    expect(drained.set(all)).toBe(true);
    expect(drained.set(all.map((one) => ({ ...one, until: new Date(1) })).reverse())).toBe(false);
    expect(drained.drains).toHaveLength(all.length);
    identities.add(drained.identity);
  }
  expect(identities.size).toBe(4);
});
