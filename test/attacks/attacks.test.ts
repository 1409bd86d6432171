// Runs the quick attacks, one after another, on one node: none may exceed its bounds. `npm run attacks` runs all
// attacks.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { slowness } from "../harness/busyness.ts";
import { some } from "../harness/depth.ts";
import { attacks } from "./all.ts";
import { type AttackedNode, startAttackedNode } from "./node.ts";

setDefaultTimeout(120_000);

let node: AttackedNode;
beforeAll(async () => {
  node = await startAttackedNode();
});
afterAll(async () => {
  await node?.stop();
});

/**
 * The factor by which the bounds are relaxed. On a busy machine, a stop of the event loop takes longer, also in CPU
 * time, because caches are shared; and the garbage collector's threads run later, so a process grows more.
 */
const slack = 2;

const quick = attacks.filter(({ isQuick }) => isQuick);
/** Whether the attack is one of the many forms of an engine's response, of which only a random part is run here. */
const isShape = ({ name }: { name: string }) => name.startsWith("an engine's ");
const tried = [...quick.filter((attack) => !isShape(attack)), ...some(20, quick.filter(isShape))];

test.each(tried.map((attack) => [attack.name, attack] as const))("%s", async (_name, attack) => {
  const bounds = (sent: Parameters<NonNullable<typeof attack.bounds>>[0]) => {
    const { step_ms, growth_bytes } = attack.bounds!(sent);
    return { step_ms: step_ms * slack * slowness(), growth_bytes: growth_bytes * slack };
  };
  const { broken } = await node.measure(attack.bounds ? { ...attack, bounds } : attack);
  expect(broken).toEqual([]);
});
