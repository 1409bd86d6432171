// What was learned of models, on both kinds of database.

import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { calibrations } from "../../src/postgres/calibration.ts";
import type { Calibrations, ModelCalibration } from "../../src/store/calibration.ts";
import { kinds, type Owned } from "../postgres/databases.ts";

setDefaultTimeout(60_000);

const input = { ratio: 0.1 + 0.2, spread: 1 / 3, bytes: 1e7 / 3, template: 7 / 3 };
const output = { tokens: 150_000.5, deltas: 1, codeUnits: 7e8, wholeTokens: 0.1, wholeCodeUnits: 0.3 };
const learnedOf = (model: string, change: Partial<ModelCalibration> = {}): ModelCalibration => ({
  model,
  input,
  output,
  ...change,
});

for (const { kind, open } of kinds) {
  describe(`what was learned, on ${kind}`, () => {
    let owned: Owned;
    let store: Calibrations;
    beforeAll(async () => {
      owned = await open();
      store = calibrations(owned.db);
    });
    beforeEach(() => owned.db.exec("truncate model_calibration"));
    afterAll(() => owned.drop());

    const readById = async () => new Map((await store.read(10)).map((one) => [one.model, one]));

    test("it is read as it was written, to the last bit, and nothing is where nothing was", async () => {
      expect(await store.read(10)).toEqual([]);
      const [whole, half] = [learnedOf("acme/a"), learnedOf('acme/"b", {c}', { output: null })];
      await store.write([whole, half]);
      await store.write([]);
      expect(await readById()).toEqual(new Map([whole, half].map((one) => [one.model, one])));
    });

    test("the last writer wins, and says nothing of what it has not observed", async () => {
      await store.write([learnedOf("acme/a"), learnedOf("acme/b")]);
      const newer = { ratio: 0.5, spread: 0, bytes: 9, template: 8 };
      await store.write([learnedOf("acme/a", { input: newer, output: null })]);
      const read = await readById();
      expect(read.get("acme/a")).toEqual(learnedOf("acme/a", { input: newer }));
      expect(read.get("acme/b")).toEqual(learnedOf("acme/b"));
    });

    test("of many the last written are read, the oldest of them first", async () => {
      for (const [second, model] of ["acme/c", "acme/a", "acme/d", "acme/b", "acme/c"].entries()) {
        await owned.db.exec(`
          create or replace function store_now() returns timestamptz language sql volatile
          as $$ select timestamptz '2026-11-21 03:00:0${second}Z' $$`);
        await store.write([learnedOf(model)]);
      }
      expect((await store.read(3)).map(({ model }) => model)).toEqual(["acme/d", "acme/b", "acme/c"]);
    });

    test("nodes that write the same models in any order wait for each other, and all of them end", async () => {
      const models = Array.from({ length: 200 }, (_, at) => `acme/${at}`);
      const nodes = [models, [...models].reverse(), models, [...models].reverse()];
      await Promise.all(nodes.map((order) => store.write(order.map((model) => learnedOf(model)))));
      expect(await store.read(1000)).toHaveLength(200);
    });
  });
}
