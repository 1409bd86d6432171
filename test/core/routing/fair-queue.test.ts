/**
 * The order of waiting requests: nobody starves, shares are kept within a bound, and a step costs the same however many
 * requests wait.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  type Claim,
  FairQueue,
  quantum_tokens,
  type Share,
  type Ticket,
} from "../../../src/core/routing/fair-queue.ts";

interface One extends Claim {
  name: string;
}

const plain: Share = { weight: 1, priority: 0 };
const one = (organizationId: string, tokens: number, share = plain, name = ""): One => ({
  ...{ organizationId, tokens, share, name },
});

function take(queue: FairQueue<One>): One {
  const ticket = queue.next()!;
  queue.take(ticket);
  return ticket.spot.value;
}

const anyTokens = fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 130_000 }));
const anyOne = fc.record({
  organizationId: fc.constantFrom("a", "b", "c", "d", "e"),
  tokens: anyTokens,
  name: fc.string({ maxLength: 3 }),
  share: fc.constant(plain),
});

test("whoever waits is served, once, and those of one organization in their order, whatever leaves in between", () => {
  type Act = { push: One } | { leave: number } | { take: true };
  const anyAct: fc.Arbitrary<Act> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ push: anyOne }) },
    { weight: 1, arbitrary: fc.record({ leave: fc.nat(100) }) },
    { weight: 2, arbitrary: fc.constant({ take: true as const }) },
  );
  fc.assert(
    fc.property(fc.array(anyAct, { maxLength: 200 }), (acts) => {
      const queue = new FairQueue<One>();
      const waiting: Ticket<One>[] = [];
      const took = () => {
        const ticket = queue.next()!;
        const first = waiting.find(({ flow }) => flow.organizationId === ticket.flow.organizationId)!;
        expect(ticket.spot).toBe(first.spot);
        waiting.splice(waiting.indexOf(first), 1);
        queue.take(ticket);
      };
      for (const act of acts) {
        if ("push" in act) waiting.push(queue.push(act.push));
        else if ("leave" in act && waiting.length > 0) {
          const [gone] = waiting.splice(act.leave % waiting.length, 1);
          queue.remove(gone!);
          queue.remove(gone!);
        } else if ("take" in act && waiting.length > 0) took();
        expect(queue.length).toBe(waiting.length);
        for (const id of ["a", "b"])
          expect(queue.waitingOf(id)).toBe(waiting.filter(({ spot }) => spot.value.organizationId === id).length);
      }
      while (waiting.length > 0) took();
      expect(queue.next()).toBeNull();
    }),
    { numRuns: 500 },
  );
});

test("organizations that always wait get tokens by their weights, within a quantum and the largest request", () => {
  const anyCase = fc.record({
    weights: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 2, maxLength: 6 }),
    sizes: fc.array(anyTokens, { minLength: 6, maxLength: 40 }),
    steps: fc.integer({ min: 1, max: 400 }),
  });
  fc.assert(
    fc.property(anyCase, ({ weights, sizes, steps }) => {
      const queue = new FairQueue<One>();
      const served = weights.map(() => 0);
      let next = 0;
      const push = (index: number) =>
        queue.push(one(`${index}`, sizes[next++ % sizes.length]!, { weight: weights[index]!, priority: 0 }));
      // Each organization gets two requests, so that it always has one waiting.
      for (const index of weights.keys()) push(index) && push(index);
      for (let step = 0; step < steps; step++) {
        const { organizationId, tokens } = take(queue);
        served[Number(organizationId)]! += tokens;
        push(Number(organizationId));
      }
      const largest = Math.max(...sizes);
      const normal = served.map((tokens, index) => tokens / weights[index]!);
      const bound = 2 * (quantum_tokens + largest);
      expect(Math.max(...normal) - Math.min(...normal)).toBeLessThanOrEqual(bound);
    }),
    { numRuns: 300 },
  );
});

test("a first turn is as long as the weight says: of four times the weight, four requests for one", () => {
  const queue = new FairQueue<One>();
  const heavy: Share = { weight: 4, priority: 0 };
  for (let count = 0; count < 8; count++) {
    queue.push(one("light", quantum_tokens));
    queue.push(one("heavy", quantum_tokens, heavy));
  }
  const served = Array.from({ length: 5 }, () => take(queue).organizationId);
  expect(served.sort()).toEqual(["heavy", "heavy", "heavy", "heavy", "light"]);
});

test("nobody starves: between two turns of one, no other gets more than its share, however many come and go", () => {
  const queue = new FairQueue<One>();
  queue.push(one("patient", 5_000, plain, "its own"));
  for (let turn = 0; turn < 3; turn++) queue.push(one("patient", 5_000));
  let others = 0;
  // Ninety organizations, each with one request at a time, return repeatedly as if they were new.
  const crowd = Array.from({ length: 90 }, (_, name) => `crowd-${name}`);
  for (const name of crowd) queue.push(one(name, 1_000));
  for (let patients = 0; patients < 3; ) {
    const { organizationId } = take(queue);
    if (organizationId === "patient") {
      patients += 1;
      others = 0;
    } else {
      queue.push(one(organizationId, 1_000));
      others += 1;
    }
    // Between two requests of `patient`, each of the others has at most two turns of at most five requests, and one
    // request as a new organization.
    expect(others).toBeLessThanOrEqual(crowd.length * 11);
  }
});

test("an organization that had nothing waiting is next, once, however many wait", () => {
  const busyAfter = (taken: number) => {
    const queue = new FairQueue<One>();
    for (let count = 0; count < 1000; count++) queue.push(one("busy", 2_000));
    for (let count = 0; count < taken; count++) take(queue);
    queue.push(one("quiet", 2_000));
    expect(take(queue).organizationId).toBe("quiet");
    return queue;
  };
  // The quiet organization is next once the busy one has had its own first turn: two requests that its credit covers,
  // and a third that it pays back later.
  for (let taken = 3; taken < 20; taken++) busyAfter(taken);
  const queue = busyAfter(50);
  // The quiet organization returns repeatedly: after its first turn, it gets every second turn.
  const order = Array.from({ length: 40 }, () => {
    if (queue.waitingOf("quiet") === 0) queue.push(one("quiet", 2_000));
    return take(queue).organizationId;
  });
  expect(order.slice(0, 6)).toContain("busy");
  const quiet = order.filter((name) => name === "quiet").length;
  expect(quiet).toBeGreaterThanOrEqual(18);
  expect(quiet).toBeLessThanOrEqual(22);
});

test("what a large request took beyond a turn is paid back before the next one", () => {
  const queue = new FairQueue<One>();
  for (let count = 0; count < 3; count++) queue.push(one("large", 40_960));
  for (let count = 0; count < 300; count++) queue.push(one("small", 1_024));
  const order = Array.from({ length: 90 }, () => take(queue));
  const between = order
    .map(({ organizationId }, index) => (organizationId === "large" ? index : -1))
    .filter((at) => at >= 0);
  expect(between.length).toBeGreaterThanOrEqual(2);
  // For each large request, the small ones get ten turns of four requests.
  expect(between[1]! - between[0]!).toBeGreaterThanOrEqual(36);
  expect(between[1]! - between[0]!).toBeLessThanOrEqual(48);
});

test("a better priority goes before all others, and the same share within one", () => {
  const queue = new FairQueue<One>();
  for (let count = 0; count < 10; count++) queue.push(one("trial", 1_000, { weight: 8, priority: 1 }));
  for (let count = 0; count < 10; count++) queue.push(one("paid", 1_000, { weight: 1, priority: 0 }));
  const order = Array.from({ length: 20 }, () => take(queue).organizationId);
  expect(order).toEqual([...Array(10).fill("paid"), ...Array(10).fill("trial")]);
});

test("of those with nothing running, the one that waits for longest", () => {
  const queue = new FairQueue<One>();
  queue.begun("busy");
  queue.push(one("busy", 1));
  queue.push(one("first", 1));
  queue.push(one("second", 1));
  expect(queue.nextQuiet()!.flow.organizationId).toBe("first");
  queue.begun("first");
  expect(queue.nextQuiet()!.flow.organizationId).toBe("second");
  queue.ended("busy");
  queue.remove(queue.nextQuiet()!);
  expect(queue.nextQuiet()!.flow.organizationId).toBe("busy");
  expect([queue.isQuiet("busy"), queue.isQuiet("first")]).toEqual([true, false]);
});

test("a step costs the same however many wait: turns are bounded by the tokens served", () => {
  const turnsOf = (organizations: number, each: number) => {
    let turns = 0;
    const share: Share = {
      priority: 0,
      get weight() {
        turns += 1;
        return 1;
      },
    };
    const queue = new FairQueue<One>();
    for (let name = 0; name < organizations; name++)
      for (let count = 0; count < each; count++) queue.push(one(`${name}`, 4_096, share));
    turns = 0;
    const steps = 2_000;
    for (let step = 0; step < steps; step++) take(queue);
    return turns / steps;
  };
  const few = turnsOf(4, 1_000);
  const many = turnsOf(4_000, 10);
  expect(few).toBeLessThan(4);
  expect(many).toBeLessThan(4);
});

test("an organization that has nothing running or waiting any more leaves nothing", () => {
  const queue = new FairQueue<One>();
  const heap_bytes = () => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  const pass = (from: number, to: number) => {
    for (let count = from; count < to; count++) {
      queue.push(one(`org-${count}`, 1));
      queue.begun(take(queue).organizationId);
      queue.ended(`org-${count}`);
    }
  };
  pass(0, 1_000);
  // The median of three rounds, because other test files of this process may allocate or free memory meanwhile.
  const growths = [0, 1, 2].map((round) => {
    const before = heap_bytes();
    pass(1_000 + round * 100_000, 101_000 + round * 100_000);
    return heap_bytes() - before;
  });
  expect(queue.length).toBe(0);
  // The growth is less than 21 bytes for each organization.
  expect(growths.toSorted((one, other) => one - other)[1]).toBeLessThan(2 * 1024 * 1024);
});
