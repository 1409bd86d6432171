// A drain lasts no longer than the requests that are open.
import { expect, test } from "bun:test";
import type { Call } from "../../../src/core/http/call.ts";
import { lifecycle } from "../../../src/core/http/frame.ts";
import { asFault } from "../../../src/core/inference/fault.ts";

/** An open request, and the codes of the faults that ended it. */
function opened() {
  const ended: string[] = [];
  const call: Pick<Call, "end"> = { end: (fault) => void ended.push(asFault(fault).code) };
  return { call: call as Call, ended };
}

test("a drain ends with the last open request, which ends as it would have", async () => {
  const requests = lifecycle();
  const [one, other] = [opened(), opened()];
  const [first, second] = [requests.enter(one.call), requests.enter(other.call)];
  let isFinished = false;
  const finished = requests.finish(60_000).then(() => {
    isFinished = true;
  });
  requests.leave(first);
  await Bun.sleep(1);
  expect(isFinished).toBe(false);
  requests.leave(second);
  await finished;
  expect([...one.ended, ...other.ended]).toEqual([]);
});

test("a request that is still open after the time of a drain ends with an error, and is waited for", async () => {
  const requests = lifecycle();
  const { call, ended } = opened();
  const place = requests.enter(call);
  const finished = requests.finish(1);
  while (ended.length === 0) await Bun.sleep(1);
  expect(ended).toEqual(["draining"]);
  expect(await Promise.race([finished.then(() => "finished"), Bun.sleep(1)])).toBeUndefined();
  requests.leave(place);
  await finished;
  expect(ended).toEqual(["draining"]);
});
