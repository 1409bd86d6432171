import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MemoryBudget, type MemoryReservation } from "../../../src/core/body/memory.ts";
import { memoryLimits } from "../../../src/core/http/bounds.ts";
import { descriptorsKept, pressure } from "../../../src/core/http/garbage.ts";

const limits = { node_bytes_max: 1000, key_bytes_max: 400 };
const mib = 1024 * 1024;

describe("memory in flight", () => {
  test("a key has its share, the node its whole, and what ends gives back", () => {
    const budget = new MemoryBudget(limits, () => false);
    const [one, two, three, four] = ["a", "a", "b", "c"].map((key) => budget.reservation(key)) as [
      MemoryReservation,
      MemoryReservation,
      MemoryReservation,
      MemoryReservation,
    ];
    expect(one.growTo(300)).toBeNull();
    expect(two.growTo(101)).toBe("key");
    expect(three.growTo(400)).toBeNull();
    expect(four.growTo(301)).toBe("node");
    expect(budget.bytes).toBe(700);
    one[Symbol.dispose]();
    expect(four.growTo(301)).toBeNull();
    expect(two.growTo(101)).toBeNull();
    for (const each of [one, two, three, four]) each[Symbol.dispose]();
    expect(budget.bytes).toBe(0);
  });

  test("memory that is given back before the end is free, and is reported once", () => {
    const heard: number[] = [];
    const budget = new MemoryBudget(
      limits,
      () => false,
      (bytes) => void heard.push(bytes),
    );
    const one = budget.reservation("a");
    expect(one.growTo(300)).toBeNull();
    one.shrinkTo(50);
    one.shrinkTo(60);
    expect([one.bytes, budget.bytes]).toEqual([50, 50]);
    one[Symbol.dispose]();
    one[Symbol.dispose]();
    expect(budget.bytes).toBe(0);
    expect(heard).toEqual([250, 50]);
  });

  test("what a request asks for after its end is not held, because nobody would give it back", () => {
    const heard: number[] = [];
    const budget = new MemoryBudget(
      limits,
      () => false,
      (bytes) => void heard.push(bytes),
    );
    const one = budget.reservation("a");
    expect(one.growTo(10)).toBeNull();
    one[Symbol.dispose]();
    expect([one.answerTo(100), one.growTo(50), one.answerTo(20)]).toEqual([null, null, null]);
    one.shrinkTo(0);
    expect([one.bytes, budget.bytes]).toEqual([0, 0]);
    expect(heard).toEqual([10]);
  });

  test("a reservation grows and doesn't shrink by itself; refused, it holds what it held", () => {
    const budget = new MemoryBudget(limits, () => false);
    const other = budget.reservation("a");
    expect(other.growTo(100)).toBeNull();
    const one = budget.reservation("a");
    for (const bytes of [100, 250, 50]) expect(one.growTo(bytes)).toBeNull();
    expect(one.bytes).toBe(250);
    expect(one.growTo(301)).toBe("key");
    expect(budget.bytes).toBe(350);
  });

  test("an answer counts beside the body, as much of it as there is now, and ends with the request", () => {
    const budget = new MemoryBudget(limits, () => false);
    const other = budget.reservation("b");
    expect(other.growTo(300)).toBeNull();
    const one = budget.reservation("a");
    expect([one.growTo(100), one.answerTo(200), one.growTo(150)]).toEqual([null, null, null]);
    expect([one.bytes, budget.bytes]).toEqual([350, 650]);
    expect(one.answerTo(551)).toBe("node");
    expect(one.answerTo(50)).toBeNull();
    one.shrinkTo(10);
    expect([one.bytes, budget.bytes]).toEqual([60, 360]);
    one[Symbol.dispose]();
    expect([one.bytes, budget.bytes]).toEqual([0, 300]);
  });

  test("a request that is alone is served, however much it needs and however full the process is", () => {
    const budget = new MemoryBudget(limits, () => true);
    const one = budget.reservation("a");
    expect([one.growTo(900), one.growTo(5000)]).toEqual([null, null]);
    expect(budget.reservation("b").growTo(1)).toBe("node");
  });

  test("above the mark of the process what is new is refused, and what runs goes on", () => {
    let isHigh = false;
    const budget = new MemoryBudget(limits, () => isHigh);
    const running = budget.reservation("a");
    expect(running.growTo(10)).toBeNull();
    isHigh = true;
    expect(budget.reservation("b").growTo(10)).toBe("process");
    expect(running.growTo(10)).toBeNull();
    isHigh = false;
    expect(budget.reservation("b").growTo(10)).toBeNull();
  });

  test("whatever comes and goes, the sum is that of what is held, and no bound is passed", () => {
    const step = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      slot: fc.nat(7),
      bytes: fc.nat(500),
      ends: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const budget = new MemoryBudget(limits, () => false);
        const held = new Map<number, MemoryReservation>();
        for (const { key, slot, bytes, ends } of steps) {
          const one = held.get(slot) ?? budget.reservation(key);
          held.set(slot, one);
          const others = budget.bytes - one.bytes;
          if (ends) {
            one[Symbol.dispose]();
            held.delete(slot);
          } else if (one.growTo(bytes) === null && others > 0 && budget.bytes > limits.node_bytes_max) return false;
          const sum = [...held.values()].reduce((all, { bytes: own }) => all + own, 0);
          if (sum !== budget.bytes) return false;
        }
        for (const one of held.values()) one[Symbol.dispose]();
        return budget.bytes === 0;
      }),
    );
  });

  test("unless they are set, the bounds follow from the memory, and some of the largest bodies always fit", () => {
    const of = (memory_bytes: number) =>
      memoryLimits({ memory_bytes, body_bytes_max: 32 * mib, in_flight_bytes_max: 0, key_in_flight_bytes_max: 0 });
    expect(of(8192 * mib)).toEqual({ node_bytes_max: 2048 * mib, key_bytes_max: 256 * mib });
    expect(of(128 * mib)).toEqual({ node_bytes_max: 64 * mib, key_bytes_max: 64 * mib });
    const set = { memory_bytes: 1e9, body_bytes_max: 1000, in_flight_bytes_max: 77, key_in_flight_bytes_max: 33 };
    expect(memoryLimits(set)).toEqual({ node_bytes_max: 77, key_bytes_max: 33 });
  });
});

describe("pressure", () => {
  function machine() {
    const state = { now_ms: 0, resident: 100, lowest: 10, looks: 0, collections: 0 };
    const felt = pressure(
      { memory_bytes: 1000, descriptors_max: 1024 },
      {
        residentBytes() {
          state.looks++;
          return state.resident;
        },
        collect: () => void state.collections++,
        lowestFreeDescriptor: () => state.lowest,
      },
      () => state.now_ms,
    );
    return { state, felt };
  }

  test("is looked at ten times a second at most", () => {
    const { state, felt } = machine();
    for (; state.now_ms < 1000; state.now_ms++) felt.memoryIsHigh();
    expect(state.looks).toBe(10);
  });

  test("of memory asks for a collection, and for the next one five seconds later", () => {
    const { state, felt } = machine();
    state.resident = 1001;
    for (; state.now_ms < 10_000; state.now_ms += 50) expect(felt.memoryIsHigh()).toBe(true);
    expect(state.collections).toBe(2);
    state.resident = 1000;
    state.now_ms += 100;
    expect(felt.memoryIsHigh()).toBe(false);
  });

  test("of descriptors begins before the last one is gone", () => {
    const { state, felt } = machine();
    state.lowest = 1024 - descriptorsKept(1024) - 1;
    expect(felt.descriptorsAreFew()).toBe(false);
    state.now_ms += 100;
    state.lowest++;
    expect(felt.descriptorsAreFew()).toBe(true);
    expect([64, 1024, 20_000].map(descriptorsKept)).toEqual([32, 64, 512]);
  });
});
