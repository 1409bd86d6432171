/** Work that is requested in one turn of the event loop is done together, in order, and not within that turn. */
import { expect, test } from "bun:test";
import { together } from "../../../src/core/time/turns.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("work waits for the end of its turn, and all of it is done in order before what it set off", async () => {
  const soon = together();
  const done: string[] = [];
  const work = (name: string) => () => {
    done.push(name);
    queueMicrotask(() => done.push(`after ${name}`));
  };
  soon(work("a"));
  soon(work("b"));
  await Promise.resolve();
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(["a", "b", "after a", "after b"]);
});

test("what work asks for is done in the next turn", async () => {
  const soon = together();
  const done: string[] = [];
  soon(() => {
    done.push("a");
    soon(() => done.push("b"));
  });
  await nextTurn();
  await nextTurn();
  expect(done).toEqual(["a", "b"]);
});
