// Calibrations, the estimates that nodes learn from engines' reports: the tokens of models' inputs and of routes'
// outputs, on both kinds of database.

import { beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Calibrations, InputRatio, OutputSums } from "../../../src/core/store/calibration.ts";
import { calibrations } from "../../../src/stores/postgres/calibration.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";

setDefaultTimeout(60_000);

const input: InputRatio = { ratio: 0.1 + 0.2, spread: 1 / 3, bytes: 1e7 / 3, template: 7 / 3 };
const output: OutputSums = { tokens: 150_000.5, deltas: 1, codeUnits: 7e8, textTokens: 0.1, textCodeUnits: 0.3 };

describe.each(databaseKinds(import.meta.path))("what was learned, on %s", (kind) => {
  const db = databaseForTests(kind);
  let store: Calibrations;
  beforeAll(() => {
    store = calibrations(db);
  });
  beforeEach(() => db.exec("truncate input_calibration, output_calibration"));

  const inputsOf = (...models: string[]) => new Map(models.map((model) => [model, input]));

  test("it is read as it was written, to the last bit, and nothing is where nothing was", async () => {
    expect(await store.inputs.read(10)).toEqual([]);
    expect(await store.outputs.read(10)).toEqual([]);
    await store.inputs.write(inputsOf("acme/a", 'acme/"b", {c}'));
    await store.outputs.write(new Map([["main/a {1},2", output]]));
    await store.outputs.write(new Map());
    expect(new Map(await store.inputs.read(10))).toEqual(inputsOf("acme/a", 'acme/"b", {c}'));
    expect(await store.outputs.read(10)).toEqual([["main/a {1},2", output]]);
  });

  test("the last writer wins, and says nothing of what it has not observed", async () => {
    await store.inputs.write(inputsOf("acme/a", "acme/b"));
    const newer = { ratio: 0.5, spread: 0, bytes: 9, template: 8 };
    await store.inputs.write(new Map([["acme/a", newer]]));
    const read = new Map(await store.inputs.read(10));
    expect(read.get("acme/a")).toEqual(newer);
    expect(read.get("acme/b")).toEqual(input);
  });

  test("of many the last written are read, the oldest of them first", async () => {
    for (const [second, model] of ["acme/c", "acme/a", "acme/d", "acme/b", "acme/c"].entries()) {
      const at = new Date(Date.UTC(2026, 10, 21, 3, 0, second));
      await withClock(db, at, () => store.inputs.write(inputsOf(model)));
    }
    expect((await store.inputs.read(3)).map(([model]) => model)).toEqual(["acme/d", "acme/b", "acme/c"]);
  });

  test("nodes that write the same routes in any order wait for each other, and all of them end", async () => {
    const routes = Array.from({ length: 200 }, (_, at) => `main/${at}`);
    const nodes = [routes, [...routes].reverse(), routes, [...routes].reverse()];
    await Promise.all(nodes.map((order) => store.outputs.write(new Map(order.map((route) => [route, output])))));
    expect(await store.outputs.read(1000)).toHaveLength(200);
  });
});
