/**
 * A look-up that concurrent callers share: one runs at a time, and it runs again when the result is old or was an
 * error.
 */
import { expect, test } from "bun:test";
import { latest, shared } from "../../../src/admin/http/shared.ts";

/** Look-ups that stay pending until the test resolves or rejects them. */
function answeredByHand() {
  const looks: PromiseWithResolvers<number>[] = [];
  const look = () => {
    const one = Promise.withResolvers<number>();
    looks.push(one);
    return one.promise;
  };
  return { looks, look };
}

test("all who ask at the same time, or soon after, have one look; later ones have a new one", async () => {
  let now_ms = 0;
  const { looks, look } = answeredByHand();
  const ask = shared(look, 100, () => now_ms);
  const asked = [ask(), ask()];
  now_ms = 5_000;
  asked.push(ask());
  looks[0]!.resolve(1);
  expect(await Promise.all(asked)).toEqual([1, 1, 1]);
  now_ms += 99;
  expect(await ask()).toBe(1);
  now_ms += 1;
  const failing = [ask(), ask()];
  looks[1]!.reject(new Error("away"));
  for (const one of failing) expect(one).rejects.toThrow("away");
  await Promise.allSettled(failing);
  const after = ask();
  looks[2]!.resolve(3);
  expect(await after).toBe(3);
});

test("where an earlier result will do, nobody waits for a newer one, or hears that it failed", async () => {
  let now_ms = 0;
  const { looks, look } = answeredByHand();
  const ask = latest(look, 100, () => now_ms);
  const first = ask();
  looks[0]!.resolve(1);
  expect(await first).toBe(1);
  now_ms = 1_000;
  expect([await ask(), await ask(), looks.length]).toEqual([1, 1, 2]);
  looks[1]!.reject(new Error("away"));
  await Bun.sleep(0);
  expect(await ask()).toBe(1);
  looks[2]!.resolve(3);
  await Bun.sleep(0);
  expect(await ask()).toBe(3);
});
