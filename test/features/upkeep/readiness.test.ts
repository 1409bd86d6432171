/** /readyz reports the checks' last results: a check that hangs does not delay the response, but makes it an error. */
import { describe, expect, test } from "bun:test";
import { checksumOf, migrations } from "../../../db/migrate.ts";
import type { Reloadable } from "../../../src/config/reload.ts";
import type { Call } from "../../../src/core/http/call.ts";
import type { CheckResult, Dependencies } from "../../../src/core/operations/dependencies.ts";
import { readiness } from "../../../src/core/operations/health.ts";
import type { RouteView } from "../../../src/core/routing/view.ts";
import { type AskingCheck, type ReadinessCheck, readinessOf } from "../../../src/features/upkeep/readiness.ts";
import { readinessChecks, routesCheck } from "../../../src/node/readiness-checks.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { VirtualClock } from "../../core/admission/virtual-time.ts";

const check = (run: AskingCheck["run"], more: Partial<ReadinessCheck> = {}): ReadinessCheck => ({
  ...{ name: "it", severity: "required", every_ms: 1000, run },
  ...more,
});

/** Starts the checks of a node on a virtual clock; `turns` records the failed checks at each change. */
function startedWith(...checks: ReadinessCheck[]) {
  const time = new VirtualClock();
  const turns: string[][] = [];
  const { results, began, stop } = readinessOf(checks, {
    lifecycle: { draining: false },
    clock: time,
    turned: (failing) => turns.push(failing.map(({ name }) => name)),
  });
  return { time, turns, began, stop, problem: () => results().find(({ name }) => name === "it")?.problem };
}

describe("a check", () => {
  test("that hangs is given up after its time, and is a problem until it answers again", async () => {
    let hangs = false;
    let runs = 0;
    const run = () => {
      runs += 1;
      return hangs ? new Promise<never>(() => {}) : Promise.resolve(null);
    };
    const { time, problem, began, stop } = startedWith(check(run));
    expect(problem()).toBe("not checked yet");
    await began;
    expect(problem()).toBeNull();
    hangs = true;
    await time.advance(1000);
    expect([runs, problem()]).toEqual([2, null]);
    await time.advance(3500);
    expect(problem()).toBe("no answer within 3500 ms");
    hangs = false;
    await time.advance(1000);
    expect([runs, problem()]).toEqual([3, null]);
    stop();
    await time.advance(60_000);
    expect(runs).toBe(3);
  });

  test("whose result is old counts as a problem", async () => {
    const { time, problem, began, stop } = startedWith(check(async () => null));
    await began;
    stop();
    await time.advance(6500);
    expect(problem()).toBeNull();
    await time.advance(1);
    expect(problem()).toBe("last checked 6 s ago");
  });

  test("does not count the time in which this process stood still", async () => {
    const answer = Promise.withResolvers<null>();
    const { time, problem, began, stop } = startedWith(check(() => answer.promise));
    time.freeze(60_000);
    // The overdue timers run first, and only then the results that arrived meanwhile.
    await time.advance(0);
    answer.resolve(null);
    await began;
    expect(problem()).toBeNull();
    stop();
  });

  test("of a fact of this process is never old: a probe gets the fact as it is now", async () => {
    let known: string | null = null;
    const knowing: ReadinessCheck = { name: "it", severity: "required", every_ms: 1000, read: () => known };
    const { time, turns, problem, stop } = startedWith(knowing);
    expect(problem()).toBeNull();
    known = "worker 2: has said nothing for 6 s";
    expect(problem()).toBe(known);
    await time.advance(1000);
    known = null;
    expect(problem()).toBeNull();
    await time.advance(1000);
    expect(turns).toEqual([["it"], []]);
    stop();
  });

  test("that throws is a problem without the message of the error", async () => {
    const { problem, began, stop } = startedWith(check(() => Promise.reject(new Error("postgres://user:secret@host"))));
    await began;
    expect(problem()).toBe("the check failed");
    stop();
  });

  test("that only warns delays no start, and turns nothing", async () => {
    let answer: string | null = null;
    const hanging = check(() => new Promise(() => {}), { name: "other", severity: "warning" });
    const { time, turns, began, stop } = startedWith(
      check(async () => answer),
      hanging,
    );
    await began;
    await time.advance(10_000);
    expect(turns).toEqual([]);
    answer = "away";
    await time.advance(3000);
    answer = null;
    await time.advance(3000);
    expect(turns).toEqual([["it"], []]);
    stop();
  });
});

test("a check of routes names twenty models without one, and counts the others", async () => {
  const named = (count: number) => Array.from({ length: count }, (_, at) => `acme/m-${at}`);
  const without = (count: number) =>
    (routesCheck(() => named(count).map((model) => ({ model, state: "open" }) as RouteView)) as AskingCheck).run();
  const all = `no healthy route: ${named(20).join(", ")}`;
  expect([await without(0), await without(20), await without(23)]).toEqual([null, all, `${all} and 3 more`]);
});

test("/readyz says of each check what is wrong, and of which it only warns", async () => {
  const results: CheckResult[] = [
    { name: "catalog", severity: "required", problem: null },
    { name: "redis", severity: "warning", problem: "Redis does not answer" },
  ];
  const asked = async (query: object) => {
    const dependencies = { readiness: () => results, configurationHash: () => "abc" } as unknown as Dependencies;
    const response = await readiness.handle(dependencies, {} as Call, { query } as never);
    return [(response as Response).status, await (response as Response).json()];
  };
  const checks = { catalog: "ok", redis: "warning: Redis does not answer" };
  expect(await asked({ verbose: "" })).toEqual([200, { status: "ready", checks, configuration: "abc" }]);
  expect(await asked({})).toEqual([200, { status: "ready", checks: {} }]);
  results.push({ name: "database", severity: "required", problem: "no answer" });
  expect(await asked({})).toEqual([503, { status: "not_ready", checks: { database: "no answer" } }]);
});

test("a check of Redis says by how much limits a minute may be missed without it", async () => {
  const shares = (count: number) =>
    `each of the ${count} processes of the fleet counts its share of the limits a minute by itself, so they may be missed by a factor of up to ${count} either way`;
  const saidOf = (redis: { ping(): Promise<void> } | null, processes: number) => {
    const stores = { redis, fleet: { processes: () => processes } };
    const checks = readinessChecks({ kind: "postgres" } as Database, stores, {} as Reloadable);
    const check = checks.find(({ name }) => name === "redis") as AskingCheck;
    expect(check.severity).toBe("warning");
    return check.run();
  };
  const away = { ping: () => Promise.reject(new Error("away")) };
  expect(await saidOf({ ping: async () => {} }, 3)).toBeNull();
  expect(await saidOf(away, 1)).toBe("Redis does not answer");
  expect(await saidOf(away, 3)).toBe(`Redis does not answer: ${shares(3)}`);
  expect(await saidOf(null, 1)).toBeNull();
  expect(await saidOf(null, 2)).toBe(`there is none (REDIS_URL): ${shares(2)}`);
});

describe("a check of the database", () => {
  const never = new Promise<never>(() => {});
  const applied = migrations.map((one) => ({ name: one.name, checksum: checksumOf(one), additive: false }));
  /** The readiness checks of a node with a fake database. */
  const checksOf = (answers: { admits?(): Promise<void>; applied?(): Promise<object[]> }) => {
    const query = (text: string) => {
      if (text.includes("usage_trial")) return answers.admits!();
      return text.includes("to_regclass") ? [{ there: true }] : answers.applied!();
    };
    const database = { kind: "postgres", query: async (text: string) => query(text) };
    const alone = { redis: null, fleet: { processes: () => 1 } };
    const checks = readinessChecks(database as unknown as Database, alone, {} as Reloadable);
    return (name: string) => (checks.find((one) => one.name === name) as AskingCheck).run();
  };

  test("passes if it answers within the time that a request waits for its grant", async () => {
    const [slow, silent] = [checksOf({ admits: () => Bun.sleep(2000) }), checksOf({ admits: () => never })];
    expect(await Promise.all([slow("database"), silent("database")])).toEqual([null, "the database does not answer"]);
  }, 10_000);

  test("of its schema keeps its last result if the database does not answer", async () => {
    let answer: Promise<object[]> = never;
    const run = checksOf({ applied: () => answer });
    const unknown = "the database does not say which schema it has";
    const newer = [...applied, { name: "9999_newer", checksum: "", additive: false }];
    const words: (string | null)[] = [];
    for (const next of [never, applied, never, newer, never]) {
      answer = Promise.resolve(next);
      words.push(await run("schema"));
    }
    const isNewer = expect.stringContaining("9999_newer");
    expect(words).toEqual([unknown, null, null, isNewer, isNewer]);
  }, 10_000);
});
