/** Cancellation of work: it behaves like the platform's AbortSignal where the two agree, and has further features. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import { until } from "../../harness/until.ts";

type Step = { act: "listen" | "stop" | "abort"; which: number };

const steps = fc.array(
  fc.record<Step>({ act: fc.constantFrom("listen", "listen", "stop", "abort"), which: fc.nat(7) }),
  { maxLength: 30 },
);

/** Runs the steps on a parent and its child in turns. Returns which listener was told which reason, in order. */
function ours(all: readonly Step[]): unknown[] {
  const told: unknown[] = [];
  const parent = new Cancellation();
  const child = parent.child();
  const stops = new Map<string, () => void>();
  for (const { act, which } of all) {
    const one = which % 2 === 0 ? parent : child;
    if (act === "abort") one.abort(which);
    // A listener that is added after the abort is called at once here, but never by the platform, so such steps are
    // left out.
    else if (act === "listen" && !one.aborted && !stops.has(`${which}`)) {
      const listening = one.listen((reason) => told.push([which, reason]));
      stops.set(`${which}`, () => listening.stop());
    } else if (act === "stop") {
      stops.get(`${which}`)?.();
      stops.delete(`${which}`);
    }
    told.push([parent.aborted, parent.reason, child.aborted, child.reason]);
  }
  return told;
}

function platforms(all: readonly Step[]): unknown[] {
  const told: unknown[] = [];
  const [parent, own] = [new AbortController(), new AbortController()];
  parent.signal.addEventListener("abort", () => own.abort(parent.signal.reason));
  const stops = new Map<string, () => void>();
  for (const { act, which } of all) {
    const { signal } = which % 2 === 0 ? parent : own;
    if (act === "abort") (which % 2 === 0 ? parent : own).abort(which);
    else if (act === "listen" && !signal.aborted && !stops.has(`${which}`)) {
      const tell = () => told.push([which, signal.reason]);
      signal.addEventListener("abort", tell, { once: true });
      stops.set(`${which}`, () => signal.removeEventListener("abort", tell));
    } else if (act === "stop") {
      stops.get(`${which}`)?.();
      stops.delete(`${which}`);
    }
    told.push([parent.signal.aborted, parent.signal.reason, own.signal.aborted, own.signal.reason]);
  }
  return told;
}

test("whatever is done with it, it says and tells what the platform's does", () => {
  fc.assert(
    fc.property(steps, (all) => expect(ours(all)).toEqual(platforms(all))),
    { numRuns: 3_000, seed: 20_261_123 },
  );
});

test("who listens when it has ended is told at once, and who asks reads why", () => {
  const cancellation = new Cancellation();
  cancellation.abort("over");
  cancellation.abort("again");
  const told: unknown[] = [];
  cancellation.listen((reason) => told.push(reason)).stop();
  expect([told, cancellation.reason, cancellation.child().reason]).toEqual([["over"], "over", "over"]);
  expect(() => cancellation.throwIfAborted()).toThrow("over");
});

test("a listener may stop another that has not been told yet, and itself", () => {
  const cancellation = new Cancellation();
  const told: string[] = [];
  const first = cancellation.listen(() => {
    told.push("first");
    first.stop();
    second.stop();
  });
  const second = cancellation.listen(() => told.push("second"));
  cancellation.listen(() => told.push("third"));
  cancellation.abort("over");
  expect(told).toEqual(["first", "third"]);
});

test("a listener that throws keeps nobody from being told, and is not passed over in silence", () => {
  const script = `
    import { Cancellation } from "${new URL("../../../src/core/time/cancellation.ts", import.meta.url).pathname}";
    process.on("uncaughtException", ({ message }) => console.log("reported: " + message));
    const cancellation = new Cancellation();
    cancellation.listen(() => { throw new Error("a defect"); });
    cancellation.listen((reason) => console.log("told: " + reason));
    cancellation.abort("over");
  `;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script]);
  expect(stdout.toString().trim().split("\n").sort()).toEqual(["reported: a defect", "told: over"]);
});

test("a child ends alone, and its parent still tells the others", () => {
  const parent = new Cancellation();
  const [before, ended, after] = [parent.child(), parent.child(), parent.child()];
  ended.abort("alone");
  expect([parent.aborted, before.aborted, after.aborted]).toEqual([false, false, false]);
  parent.abort("all");
  expect([before.reason, ended.reason, after.reason]).toEqual(["all", "alone", "all"]);
});

test("a child that has ended or was detached is kept neither by its parent nor by its neighbours", async () => {
  const parent = new Cancellation();
  const [before, after] = [parent.child(), parent.child()];
  const gone = Array.from({ length: 100 }, () => overChildOf(parent)).flat();
  // The collector takes any word on the stack for a reference, and so may keep a few children alive by chance.
  await until(() => {
    Bun.gc(true);
    return gone.filter((child) => child.deref() === undefined).length > 180;
  });
  expect([parent.aborted, before.aborted, after.aborted]).toEqual([false, false, false]);
});

/** One detached child and one that has ended; the caller holds no reference to either. */
function overChildOf(parent: Cancellation): WeakRef<Cancellation>[] {
  const [detached, ended] = [parent.child(), parent.child()];
  detached.detach();
  ended.abort("alone");
  return [new WeakRef(detached), new WeakRef(ended)];
}

test("a time that is over is a reason, and keeps no process alive", async () => {
  const signal = Cancellation.timeout(5);
  const reason = await new Promise((resolve) => signal.listen(resolve));
  expect([signal.aborted, String(reason)]).toEqual([true, "Error: not done within 5 ms"]);
  const path = new URL("../../../src/core/time/cancellation.ts", import.meta.url).pathname;
  const script = `import { Cancellation } from "${path}"; Cancellation.timeout(600_000);`;
  expect(Bun.spawnSync([process.execPath, "-e", script], { timeout: 20_000 }).exitCode).toBe(0);
});
