/**
 * Work that one poll of the event loop brings: urgent work runs first, and streamed data is processed in portions,
 * between which urgent work can run.
 */
import { describe, expect, spyOn, test } from "bun:test";
import { starts, starts_portion, together, turns } from "../../../src/core/time/turns.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function recorded(portion?: number) {
  const one = turns(portion);
  const done: string[] = [];
  const soon = (name: string, isUrgent = false) =>
    one.soon(() => {
      done.push(name);
      queueMicrotask(() => done.push(`after ${name}`));
    }, isUrgent);
  return { soon, done };
}

describe("what a poll brings", () => {
  test("waits for the end of its turn, and is done in order before what it sets off", async () => {
    const { soon, done } = recorded();
    soon("a");
    soon("b");
    await Promise.resolve();
    expect(done).toEqual([]);
    await nextTurn();
    expect(done).toEqual(["a", "b", "after a", "after b"]);
  });

  test("is done in the next turn where that asked for it, all of it together where it has one urgency", async () => {
    const soon = together();
    const done: string[] = [];
    const work = (name: string) => () => {
      done.push(name);
      soon(() => done.push(`after ${name}`));
    };
    for (let at = 0; at < 100; at++) soon(work(`${at}`));
    await Promise.resolve();
    expect(done).toEqual([]);
    await nextTurn();
    expect(done).toEqual(Array.from({ length: 100 }, (_, at) => `${at}`));
    await nextTurn();
    expect(done.slice(100)).toEqual(done.slice(0, 100).map((name) => `after ${name}`));
  });

  test("is done with all that it sets off before anything that flows, where it is urgent", async () => {
    const { soon, done } = recorded();
    soon("a token");
    soon("a first part", true);
    await nextTurn();
    expect(done).toEqual(["a first part", "after a first part"]);
    await nextTurn();
    expect(done.slice(2)).toEqual(["a token", "after a token"]);
  });

  test("waits for no more than a portion of what flows, where it is urgent and comes later", async () => {
    const { soon, done } = recorded(2);
    for (const name of ["1", "2", "3", "4", "5"]) soon(name);
    await nextTurn();
    soon("a first part", true);
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(done.filter((name) => !name.startsWith("after"))).toEqual(["1", "2", "a first part", "3", "4", "5"]);
  });

  test("goes on flowing while there is always something urgent", async () => {
    const { soon, done } = recorded(1);
    soon("a token");
    for (let turn = 0; turn < 3; turn++) {
      soon("a first part", true);
      await nextTurn();
    }
    expect(done).toContain("a token");
  });

  test("is done that comes when nothing has been waiting for a while", async () => {
    const { soon, done } = recorded();
    for (const name of ["a", "b"]) {
      soon(name);
      await nextTurn();
      await nextTurn();
    }
    expect(done).toEqual(["a", "after a", "b", "after b"]);
  });

  test("costs an idle process nothing", async () => {
    const { soon, done } = recorded();
    const turn = spyOn(globalThis, "setImmediate");
    try {
      soon("a token");
      while (done.length < 2) await Bun.sleep(1);
      const turns_count = turn.mock.calls.length;
      await Bun.sleep(5);
      expect(turn.mock.calls.length).toBe(turns_count);
    } finally {
      turn.mockRestore();
    }
  });
});

describe("requests that one answer lets go on", () => {
  test("go on at once, as many as a portion", () => {
    const start = starts({ now_ms: () => 0 });
    for (let at = 0; at < starts_portion; at++) expect(start()).toBeUndefined();
    expect(start()).toBeInstanceOf(Promise);
  });

  test("give way to other work after each portion, and go on in order", async () => {
    const start = starts({ now_ms: () => 0 });
    const done: number[] = [];
    const went: number[] = [];
    for (let at = 0; at < 3 * starts_portion; at++) void Promise.resolve(start()).then(() => done.push(at));
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn();
      went.push(done.length);
    }
    expect(went).toEqual([2 * starts_portion, 3 * starts_portion, 3 * starts_portion]);
    expect(done).toEqual([...done].sort((one, other) => one - other));
  });

  test("do not wait for those of a moment before", () => {
    let now_ms = 0;
    const start = starts({ now_ms: () => now_ms });
    for (let at = 0; at < starts_portion; at++) start();
    now_ms = 10;
    expect(start()).toBeUndefined();
  });
});

test("what is urgent comes in portions too, and what flows has its turns between them", async () => {
  const one = turns(2, 2);
  const done: string[] = [];
  for (const name of ["1", "2", "3", "4", "5"]) one.soon(() => done.push(name), true);
  one.soon(() => done.push("a token"), false);
  for (let turn = 0; turn < 4; turn++) await nextTurn();
  expect(done).toEqual(["1", "2", "a token", "3", "4", "5"]);
});
