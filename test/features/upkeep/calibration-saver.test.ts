/**
 * The statistics that a node has learned about models survive a restart, and no request waits until they are stored.
 */
import { expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Calibrations, CalibrationTable, InputRatio, OutputSums } from "../../../src/core/store/calibration.ts";
import { inputEstimate } from "../../../src/core/usage/input-estimate.ts";
import { outputCalibration } from "../../../src/core/usage/output-calibration.ts";
import { type CalibrationSaverSettings, calibrationSaver } from "../../../src/features/upkeep/calibration-saver.ts";
import { saying } from "../../harness/request.ts";
import { until } from "../../harness/until.ts";

const request = saying("x", { model: "acme/a", stream: false });

const none = { cjkDeltas: 0, otherDeltas: 0, deltas: 0, latin: 0, cjk: 0, other: 0 };
const thousand = { ...none, deltas: 1, latin: 1_000 };

function memoryStore() {
  const state = { isAway: false, attempts: 0, writes: [] as string[][] };
  function tableOver<Known>(rows: Map<string, Known>): CalibrationTable<Known> {
    return {
      async read(names_max) {
        if (state.isAway) throw new Error("the store is away");
        return [...rows].slice(-names_max);
      },
      async write(learned) {
        state.attempts++;
        if (state.isAway) throw new Error("the store is away");
        state.writes.push([...learned.keys()]);
        for (const [name, known] of learned) rows.set(name, known);
      },
    };
  }
  const inputs = new Map<string, InputRatio>();
  const outputs = new Map<string, OutputSums>();
  const store: Calibrations = { inputs: tableOver(inputs), outputs: tableOver(outputs) };
  return { inputs, outputs, state, store };
}

/** A node that stores its statistics when it stops, unless the settings say otherwise. */
function nodeOver(store: Calibrations, settings: Partial<CalibrationSaverSettings> = {}) {
  const estimate = inputEstimate();
  const calibration = outputCalibration();
  const failures: unknown[] = [];
  const kept = calibrationSaver({
    store,
    input: estimate.ratios,
    output: calibration.sums,
    failed: (cause) => failures.push(cause),
    settings: { write_ms: 60_000, ...settings },
  });
  return {
    ...kept,
    failures,
    hears(model: string, inputTokens: number) {
      estimate.observe({ id: model }, 1_000, { bytes: 0 }, { ...noUsage, inputTokens, source: "reported" });
    },
    streamed: (route: string, tokens: number) =>
      calibration.of(route).observe({ tokens, streamed: thousand, whole: none }),
    /** The estimated tokens of 1,000 bytes of input, and of 1,000 code units of output. */
    takes: (model: string) => [
      estimate.tokens({ id: model }, request, 1_000),
      estimate.expected({ id: model }, { bytes: 0, tokens: 0 }, 1_000),
      calibration.of(model).tokens({ streamed: thousand, whole: none }),
      calibration.of(model).tokens({ streamed: none, whole: thousand }),
    ],
  };
}

test("a node that starts on what another left counts as that one did", async () => {
  const { state, store } = memoryStore();
  const first = nodeOver(store);
  const ignorant = first.takes("acme/a");
  for (const tokens of [300, 420, 180]) first.hears("acme/a", tokens);
  first.streamed("acme/a", 400);
  first.hears("acme/b", 90);
  await first.stop();
  const second = nodeOver(store);
  await second.recall();
  for (const model of ["acme/a", "acme/b"]) expect(second.takes(model)).toEqual(first.takes(model));
  for (const [at, taken] of second.takes("acme/a").entries()) expect(taken).not.toBe(ignorant[at]!);
  await second.stop();
  expect(state.writes).toEqual([
    ["acme/a", "acme/b"],
    ["acme/a (latin)", "acme/a"],
  ]);
});

test("a node that is killed has written before, and writes only what it observed since", async () => {
  const { inputs, state, store } = memoryStore();
  const node = nodeOver(store, { write_ms: 5 });
  node.hears("acme/a", 100);
  await until(() => state.writes.length === 1, 2_000, "the first write");
  const known = inputs.get("acme/a");
  // A value written by another node, which is newer than what this node knows.
  await store.inputs.write(new Map([["acme/a", { ratio: 0.9, spread: 0, bytes: 500, template: 8 }]]));
  node.streamed("main/b", 300);
  await until(() => state.writes.length === 3, 2_000, "the next write");
  expect(state.writes[2]).toEqual(["main/b (latin)", "main/b"]);
  expect(known?.ratio).toBeLessThan(0.2);
  expect(inputs.get("acme/a")?.ratio).toBe(0.9);
  await node.stop();
  expect(state.writes).toHaveLength(3);
});

test("a store that is away is told of once, and gets the newest when it is back", async () => {
  const { inputs, outputs, state, store } = memoryStore();
  state.isAway = true;
  const node = nodeOver(store, { write_ms: 5 });
  node.hears("acme/a", 100);
  node.streamed("main/c", 300);
  await until(() => state.attempts >= 6, 2_000, "three attempts at each");
  const [known = 0] = node.takes("acme/a");
  node.hears("acme/a", 900);
  state.isAway = false;
  await until(() => inputs.size === 1 && outputs.size === 2, 2_000, "the writes");
  expect(node.takes("acme/a")[0]).toBeGreaterThan(known);
  expect(inputs.get("acme/a")?.ratio).toBeGreaterThan(0.3);
  expect(outputs.get("main/c")?.tokens).toBe(300);
  expect(node.failures).toHaveLength(1);
  state.isAway = true;
  node.hears("acme/b", 100);
  await until(() => node.failures.length === 2, 2_000, "the second outage");
  await node.stop();
  expect(node.failures).toHaveLength(2);
});

test("a store that fails or is silent holds up neither a start nor a stop; a late answer still teaches, but what was heard since stands", async () => {
  const failing = memoryStore();
  failing.state.isAway = true;
  const node = nodeOver(failing.store);
  await node.recall();
  node.hears("acme/a", 100);
  await node.stop();
  expect(node.failures).toHaveLength(1);

  const late = Promise.withResolvers<[string, InputRatio][]>();
  const never = { read: () => new Promise<never>(() => {}), write: () => new Promise<never>(() => {}) };
  const waiting = nodeOver(
    { inputs: { ...never, read: () => late.promise }, outputs: never },
    { recall_ms: 5, stop_ms: 5 },
  );
  const ignorant = waiting.takes("acme/b");
  await waiting.recall();
  waiting.hears("acme/a", 100);
  const heard = waiting.takes("acme/a");
  late.resolve(["acme/a", "acme/b"].map((model) => [model, { ratio: 0.9, spread: 0, bytes: 500, template: 8 }]));
  await until(() => waiting.takes("acme/b")[0] !== ignorant[0], 2_000, "the late answer");
  expect(waiting.takes("acme/a")).toEqual(heard);
  await waiting.stop();
  expect(waiting.failures).toHaveLength(1);
});

test("nonsense in the store teaches nothing, and is not held against the other half", async () => {
  const { inputs, outputs, store } = memoryStore();
  const mad = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300];
  const ratios = [...mad, 0].flatMap((ratio) => [{ ratio, spread: 0.1, bytes: 500, template: 8 }]);
  const spreads = mad.map((spread) => ({ ratio: 0.3, spread, bytes: 500, template: 8 }));
  const templates = mad.map((template) => ({ ratio: 0.3, spread: 0.1, bytes: 500, template }));
  const good = { tokens: 100, deltas: 50, codeUnits: 400, textTokens: 0, textCodeUnits: 0 };
  const sums = mad.flatMap((sum) => [
    { ...good, tokens: sum },
    { ...good, deltas: sum },
    { ...good, codeUnits: sum },
    { ...good, textTokens: sum },
    { ...good, textCodeUnits: sum },
  ]);
  sums.push({ ...good, tokens: 1e8, deltas: 1, codeUnits: 1 });
  for (const [at, input] of [...ratios, ...spreads, ...templates].entries()) {
    inputs.set(`in/${at}`, input);
    outputs.set(`in/${at} (latin)`, {
      ...good,
      tokens: 0,
      deltas: 0,
      codeUnits: 0,
      textTokens: 200,
      textCodeUnits: 400,
    });
  }
  for (const [at, output] of sums.entries()) {
    outputs.set(`out/${at}`, output);
    inputs.set(`out/${at}`, { ratio: 0.5, spread: 0, bytes: 500, template: 8 });
  }
  const node = nodeOver(store);
  const [holds, expects, produced, whole] = node.takes("acme/none");
  await node.recall();
  for (const name of inputs.keys()) {
    if (name.startsWith("in/")) expect(node.takes(name)).toEqual([holds!, expects!, 500, 500]);
    else expect(node.takes(name)).toEqual([516, 460, produced!, whole!]);
  }
  await node.stop();
});
