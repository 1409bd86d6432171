// The sliding rates of a history (a simulated run): a separate store that all nodes share (Redis), over a wire that may
// fail; and, while that store is away, each node's counts against its own share.

import type { Rates } from "../../src/core/store/rates.ts";
import type { OwnRates } from "../../src/stores/counting/rates.ts";
import { memoryRates } from "../../src/stores/memory/rates.ts";
import { sharedRates, standbyRates } from "../../src/stores/memory/standby-rates.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import type { World } from "./world.ts";

/** An answer that takes longer is treated as missing (src/stores/redis/connection.ts). */
const answer_ms_max = 2_000;

export function ratesOf(world: World, judge: Judge, node: Node): Rates {
  const rates = () => (world.ratesAway ? null : world.rates);
  const first: Rates = {
    async take(request) {
      const answer = await carried(
        world,
        node,
        `rates-${request.requestId.slice("req_".length)}`,
        () => rates()?.take(request),
        (answer) => judge.counted(request.requestId, answer, null),
      );
      if (answer.answer !== "taken") return answer;
      const told = (change: () => Promise<void>) =>
        carried(world, node, `told-${request.requestId.slice("req_".length)}`, () => rates() && change()).catch(
          () => {},
        );
      return {
        ...{ answer: "taken", readings: answer.readings },
        giveBack: () => told(() => answer.giveBack()),
        correct: (tokens) => told(() => answer.correct(tokens)),
      };
    },
    read: nobodyReads,
    async close() {},
  };
  const own = memoryRates(() => node.clock.now_ms());
  const seen: OwnRates = {
    ...own,
    async take(request, processes) {
      const answer = await own.take(request, processes);
      if (processes !== undefined) judge.counted(request.requestId, answer, world.processes);
      return answer;
    },
  };
  const share = sharedRates(seen, () => world.processes);
  return standbyRates({ first: world.defects.rates?.(first) ?? first, own: seen, share, clock: node.clock });
}

/**
 * Sends a call to the store of the rates and delivers its answer. `act` calls the store, and returns nothing while the
 * store is away.
 */
export function carried<Result>(
  world: World,
  node: Node,
  about: string,
  act: () => Promise<Result> | null | undefined,
  done?: (result: Result) => void,
): Promise<Result> {
  const fate = world.ratesFate(node.nextMessage(about));
  const sent_ms = world.time.now_ms;
  return new Promise((resolve, reject) => {
    const hear = (delay_ms: number, outcome: () => void) => {
      const left_ms = sent_ms + answer_ms_max - world.time.now_ms;
      const failed = () => reject(new Error("the store of the rates did not answer"));
      node.clock.arrive(Math.max(0, Math.min(delay_ms, left_ms)), delay_ms > left_ms ? failed : outcome);
    };
    const lost = () => {
      const trouble = { from_ms: sent_ms, to_ms: world.time.now_ms };
      world.rateTroubles.push(trouble);
      hear(fate.hangs ? answer_ms_max : 1, () => reject(new Error("the store of the rates is away")));
    };
    if (fate.harmed) world.rateTroubles.push({ from_ms: sent_ms, to_ms: sent_ms + answer_ms_max });
    if (fate.lost) return lost();
    world.in(fate.arrive_ms, () => {
      const result = act();
      if (!result) return lost();
      result.then((value) => {
        done?.(value);
        if (fate.unanswered) lost();
        else hear(fate.answer_ms, () => resolve(value));
      });
    });
  });
}

/** Throws, because no client in a history reads its usage of rates. */
async function nobodyReads(): Promise<never> {
  throw new Error("rates are not read in histories");
}
