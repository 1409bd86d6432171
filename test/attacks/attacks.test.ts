// The quick attacks, one after the other on one node: what each may do at most. `npm run attacks` runs all.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
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
 * A machine that does other things too takes longer for a step, in time of its own as well: its caches are shared. And the
 * collector's threads come later, so a process grows more.
 */
const slack = 2;

const quick = attacks.filter(({ isQuick }) => isQuick);
/** The shapes that an engine's words can have, each in two ways. */
const isShape = ({ name }: { name: string }) => name.startsWith("an engine's ");
const tried = [...quick.filter((attack) => !isShape(attack)), ...some(20, quick.filter(isShape))];

test.each(tried.map((attack) => [attack.name, attack] as const))("%s", async (_name, attack) => {
  const bounds = (sent: Parameters<NonNullable<typeof attack.bounds>>[0]) => {
    const { step_ms, growth_bytes } = attack.bounds!(sent);
    return { step_ms: step_ms * slack, growth_bytes: growth_bytes * slack };
  };
  const { broken } = await node.measure(attack.bounds ? { ...attack, bounds } : attack);
  expect(broken).toEqual([]);
});
