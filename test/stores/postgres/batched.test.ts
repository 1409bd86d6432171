import { expect, test } from "bun:test";
import { batched } from "../../../src/stores/postgres/batched.ts";

/** A batched look-up that finds only even numbers, and the list of numbers in each batch. */
function evens() {
  const looks: number[][] = [];
  const find = batched<number, string>(String, async (asked) => {
    looks.push(asked);
    if (asked.includes(666)) throw new Error("lost");
    return new Map(asked.filter((one) => one % 2 === 0).map((one) => [String(one), `even ${one}`]));
  });
  return { looks, find };
}

test("all who ask in one turn are answered by one look, in which each name stands once", async () => {
  const { looks, find } = evens();
  const deeper = Promise.resolve().then(() => find(4));
  expect(await Promise.all([find(2), find(3), find(2), deeper])).toEqual(["even 2", null, "even 2", "even 4"]);
  expect(looks).toEqual([[2, 3, 4]]);
});

test("whoever asks later is looked for anew, also while an earlier look is under way", async () => {
  const { looks, find } = evens();
  const first = find(2);
  await new Promise((resolve) => setImmediate(resolve));
  expect(await Promise.all([first, find(2)])).toEqual(["even 2", "even 2"]);
  expect(looks).toEqual([[2], [2]]);
});

test("a look that fails fails for all of its turn, and for nobody after it", async () => {
  const { find } = evens();
  const [one, other] = await Promise.allSettled([find(666), find(2)]);
  expect([one!.status, other!.status]).toEqual(["rejected", "rejected"]);
  expect(await find(2)).toBe("even 2");
});
