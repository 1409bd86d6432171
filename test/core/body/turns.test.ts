/**
 * Large bodies take turns: one step of work at a time on a node, with a pause in between, fairly between keys, and for
 * one key in the order in which its bodies arrive.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { MemoryBudget } from "../../../src/core/body/memory.ts";
import { BodyTurns } from "../../../src/core/body/turns.ts";
import { takesTurns } from "../../../src/core/http/bounds.ts";
import { Call } from "../../../src/core/http/call.ts";
import { small_bytes, yieldFor } from "../../../src/core/time/turns.ts";
import { VirtualClock } from "../admission/virtual-time.ts";

const large_bytes = small_bytes + 1;

interface Body {
  key: string;
  /** The duration of each of the body's steps, in milliseconds. */
  steps_ms: number[];
}

interface Step {
  body: number;
  began_ms: number;
  ended_ms: number;
}

/**
 * Works on all bodies concurrently, on a clock that each step advances; returns the steps in the order in which they
 * ran.
 */
async function worked(bodies: readonly Body[], othersWait = () => true): Promise<Step[]> {
  const clock = new VirtualClock();
  const turns = new BodyTurns(othersWait, {
    now_ms: () => clock.now_ms(),
    soon: (run) => void clock.after(0, run),
    after: (delay_ms, run) => void clock.after(delay_ms, run),
  });
  const steps: Step[] = [];
  const work = bodies.map(async ({ key, steps_ms }, body) => {
    const pause = turns.ofBody(key);
    for (const step_ms of steps_ms) {
      await pause(large_bytes);
      const began_ms = clock.now_ms();
      clock.freeze(step_ms);
      steps.push({ body, began_ms, ended_ms: clock.now_ms() });
    }
  });
  await clock.advance(10_000);
  await Promise.all(work);
  return steps;
}

const anyBodies = fc.array(
  fc.record({
    key: fc.constantFrom("a", "b", "c"),
    steps_ms: fc.array(fc.integer({ min: 3, max: 20 }), { minLength: 1, maxLength: 6 }),
  }),
  { minLength: 1, maxLength: 8 },
);

test("between two steps there is a rest of the length of the first, whatever comes", async () => {
  await fc.assert(
    fc.asyncProperty(anyBodies, async (bodies) => {
      const steps = await worked(bodies);
      expect(steps.length).toBe(bodies.reduce((sum, { steps_ms }) => sum + steps_ms.length, 0));
      for (const [index, step] of steps.entries()) {
        const before = steps[index - 1];
        if (before) expect(step.began_ms - before.ended_ms).toBeGreaterThanOrEqual(before.ended_ms - before.began_ms);
      }
    }),
    { numRuns: 200 },
  );
});

test("of one key's bodies the first is done before the next begins", async () => {
  const steps = await worked(Array.from({ length: 4 }, () => ({ key: "a", steps_ms: [5, 5, 5] })));
  expect(steps.map(({ body }) => body)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
});

test("keys take turns, however many bodies one of them has", async () => {
  const flood = Array.from({ length: 6 }, () => ({ key: "a", steps_ms: [5, 5, 5, 5] }));
  const steps = await worked([...flood, { key: "b", steps_ms: [5, 5, 5] }]);
  const ofOther = steps.flatMap(({ body }, index) => (body === 6 ? [index] : []));
  expect(ofOther).toEqual([2, 4, 6]);
});

test("a body that is alone goes on for two milliseconds before it rests", () => {
  let now_ms = 0;
  const turns = new BodyTurns(() => true, { now_ms: () => now_ms, soon: () => {}, after: () => {} });
  const pause = turns.ofBody("a");
  expect(pause(large_bytes)).toBeUndefined();
  now_ms = 1.9;
  expect(pause(large_bytes)).toBeUndefined();
  now_ms = 2;
  expect(pause(large_bytes)).toBeInstanceOf(Promise);
});

test("where nobody else waits there is no rest", async () => {
  const bodies = [
    { key: "a", steps_ms: [5, 5, 5] },
    { key: "b", steps_ms: [5, 5] },
  ];
  const steps = await worked(bodies, () => false);
  expect(steps.map(({ began_ms }) => began_ms - steps[0]!.began_ms)).toEqual([0, 5, 10, 15, 20]);
});

test("small bodies wait for nobody", () => {
  const turns = new BodyTurns(() => true, { now_ms: () => 0, soon: () => {}, after: () => {} });
  for (let body = 0; body < 3; body++) expect(turns.ofBody("a")(small_bytes)).toBeUndefined();
});

function callWith(headers: Record<string, string>): Call {
  const connection = { address: () => "127.0.0.1", isLocal: () => true, keepOpen() {} };
  const call = new Call("req_1", new Request("http://localhost/", { headers }), "/", connection);
  const budget = new MemoryBudget({ node_bytes_max: 1e9, key_bytes_max: 1e9 }, () => false);
  call.holds(budget.reservation("key_1"));
  return call;
}

test.each([
  ["announced as large", { "content-length": `${large_bytes}` }, true],
  ["announced as small", { "content-length": `${small_bytes}` }, false],
  ["in chunks, of any size", {}, true],
  ["compressed, of any size", { "content-length": "10", "content-encoding": "gzip" }, true],
])("a request whose body is %s: whether it takes turns", (_name, headers, takes) => {
  const call = callWith(headers as Record<string, string>);
  const pause = takesTurns({ bounds: { turns: new BodyTurns(() => true) } } as never, call);
  expect(pause !== yieldFor).toBe(takes);
  expect(call.pause).toBe(pause);
});
