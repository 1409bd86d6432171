// Gathered work: one run serves all callers that asked for it, no two runs overlap, and none starts after a stop.

import { expect, test } from "bun:test";
import { gathered } from "../../../src/core/time/clock.ts";
import { until } from "../../harness/until.ts";

test("is done once for all who asked, and once more for who asks after that", async () => {
  let done = 0;
  const work = gathered(async () => {
    done++;
    return null;
  });
  for (let i = 0; i < 10; i++) work.ask(1);
  await until(() => done === 1);
  work.ask(1);
  await until(() => done === 2);
  await work.stop();
});

test("is due again when it says so, and never under way twice", async () => {
  let running = 0;
  let most = 0;
  let rounds = 0;
  const work = gathered(async () => {
    most = Math.max(most, ++running);
    await Bun.sleep(2);
    running--;
    return ++rounds < 5 ? 0 : null;
  });
  work.ask(0);
  await until(() => {
    work.ask(0);
    return rounds >= 5;
  });
  await work.stop();
  expect(most).toBe(1);
});

test("stopping waits for what is under way, and nothing comes after it", async () => {
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  let ended = 0;
  const work = gathered(async () => {
    started.resolve();
    await finish.promise;
    ended++;
    return 0;
  });
  work.ask(0);
  await started.promise;
  let isStopped = false;
  const stopped = work.stop().then(() => {
    isStopped = true;
  });
  await Bun.sleep(0);
  expect([isStopped, ended]).toEqual([false, 0]);
  finish.resolve();
  await stopped;
  expect(ended).toBe(1);
  work.ask(0);
  await Bun.sleep(20);
  expect(ended).toBe(1);
});
