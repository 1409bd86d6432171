import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Configuration } from "../../src/config/configuration.ts";
import { engineNames } from "../../src/config/engine-names.ts";
import { configurationHash } from "../../src/config/hash.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import type { ConfigurationError } from "../../src/config/problem.ts";
import { reloadable } from "../../src/config/reload.ts";
import { filled } from "../../src/config/settings/row.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { needsSimulator, withSimulatorAt } from "../../src/config/simulator.ts";
import { readFileBounded } from "../../src/config/source.ts";
import { noLimits } from "../../src/core/store/plan.ts";
import { configured, load, problemsOf, withModel } from "./reading.ts";

/** Every route as text: `id → upstream url model`. */
function routes({ catalog }: Configuration): string[] {
  return [...catalog.models.values()].flatMap(({ id, routes }) =>
    routes.map(({ upstream, model }) => `${id} → ${upstream.name} ${upstream.url} ${model}`),
  );
}

const engine = { SLUICE_UPSTREAM_URL: "http://127.0.0.1:8000", SLUICE_UPSTREAM_KEY: "slumber" };

describe("without a file", () => {
  test("the simulator serves the 31 models of the default catalog", () => {
    const configuration = configured(null);
    expect(needsSimulator(configuration)).toBe(true);
    expect(routes(configuration)).toHaveLength(31);
    expect(new Set([...configuration.catalog.models.values()].map(({ routes }) => routes[0]?.upstream))).toEqual(
      new Set(configuration.upstreams),
    );
    expect(configuration.limits).toEqual(filled(sections.limits.properties));
    expect([...configuration.catalog.plans.keys()]).toEqual(["starter", "pro", "unlimited"]);
  });

  test("a starter plan holds a working day with a coding agent, pro ten times as much, unlimited whatever is asked", () => {
    const { plans } = configured(null).catalog;
    const starter = { session: 1e9, week: 5e9, month: 16e9, requestsPerMinute: 120, tokensPerMinute: 2e6 };
    const tenfold = Object.fromEntries(Object.entries(starter).map(([name, limit]) => [name, 10 * limit]));
    expect(plans.get("starter")).toEqual({ name: "starter", ...starter, concurrentRequests: 8 });
    expect(plans.get("pro")).toMatchObject({ ...tenfold, concurrentRequests: 64 });
    expect(plans.get("unlimited")).toEqual({ ...noLimits, name: "unlimited" });
  });

  test("the simulator's address is put in where it is known, and every route leads there", () => {
    const url = "http://127.0.0.1:4100/v1";
    const moved = withSimulatorAt(configured(null), url);
    expect(moved.upstreams.map((upstream) => upstream.url)).toEqual([url]);
    expect(routes(moved)[0]).toBe(
      `meta-llama/llama-3.1-8b-instruct → simulator ${url} meta-llama/llama-3.1-8b-instruct`,
    );
  });

  test("SLUICE_UPSTREAM_URL sends every model to one engine, under its public id", () => {
    const configuration = configured(null, engine);
    expect(needsSimulator(configuration)).toBe(false);
    expect(configuration.upstreams).toMatchObject([
      { url: "http://127.0.0.1:8000/v1", protocol: "openai-chat", apiKey: "slumber" },
    ]);
    const ids = [...configuration.catalog.models.keys()];
    expect(routes(configuration)).toEqual(ids.map((id) => `${id} → environment http://127.0.0.1:8000/v1 ${id}`));
    const named = configured(null, { ...engine, SLUICE_UPSTREAM_MODEL: "qwen3:8b" });
    expect(routes(named).every((route) => route.endsWith(" qwen3:8b"))).toBe(true);
  });
});

describe("a file that says only a part", () => {
  test("models alone replace the default catalog, and the default plans stay", () => {
    const { catalog } = configured(
      "metering: { currency: USD }\nmodels: [{ id: a/b, created: 1, context_window: 9, prices: { input: 0, output: 0 }, routes: [{ upstream: simulator, model: b }] }]",
    );
    expect([...catalog.models.keys()]).toEqual(["a/b"]);
    expect([...catalog.plans.keys()]).toEqual(["starter", "pro", "unlimited"]);
  });

  test("plans alone stand beside the default ones or replace them by name, and the default models stay", () => {
    const { catalog } = configured("plans: { pro: { session: 7 }, team: {} }");
    expect(catalog.models.size).toBe(31);
    expect([...catalog.plans.keys()]).toEqual(["starter", "pro", "unlimited", "team"]);
    expect(catalog.plans.get("pro")).toMatchObject({ session: 7e9, week: null, requestsPerMinute: null });
    expect(Object.values(catalog.plans.get("team") ?? {}).filter((limit) => limit !== null)).toEqual(["team"]);
  });

  test("one upstream alone serves the default catalog", () => {
    const configuration = configured('upstreams: { main: { url: "http://127.0.0.1:9000/v1" } }');
    expect(configuration.upstreams.map((upstream) => upstream.name)).toEqual(["main"]);
    expect(routes(configuration)).toHaveLength(31);
    expect(routes(configuration)[0]).toContain(" → main http://127.0.0.1:9000/v1 ");
  });

  test("an upstream that no model uses yet is kept, and the simulator runs only where a route leads to it", () => {
    const text = withModel().replace("} }", '}, spare: { url: "http://127.0.0.1:9001" } }');
    const configuration = configured(text);
    expect(configuration.upstreams.map((upstream) => upstream.name)).toEqual(["main", "spare"]);
    expect(needsSimulator(configuration)).toBe(false);
  });

  test("settings left out keep their defaults", () => {
    const { metering, limits } = configured("metering: { sweep_s: 0.5 }\nlimits: { drain_ms: 0 }");
    expect(metering).toEqual({ ...configured(null).metering, sweep_s: 0.5 });
    expect(limits).toEqual({ ...filled(sections.limits.properties), drain_ms: 0 });
  });

  test("a short lease alone gets checkpoints that are shorter still", () => {
    expect(configured("metering: { lease_s: 1.5 }").metering.checkpoint_s).toBe(0.5);
    expect(configured("metering: { lease_s: 1.5, checkpoint_s: 1 }").metering.checkpoint_s).toBe(1);
  });
});

describe("environment and file together", () => {
  test("the environment's engine wins over the file's routes, keeps their names of models, and says so", () => {
    const text = withModel({
      routes: [
        { upstream: "main", model: "second", priority: 2 },
        { upstream: "main", model: "closed", priority: 0, weight: 0 },
        { upstream: "main", model: "best", priority: 1 },
      ],
    });
    const configuration = configured(text, engine);
    expect(routes(configuration)).toEqual(["acme/writer-1 → environment http://127.0.0.1:8000/v1 best"]);
    expect(configuration.upstreams).toHaveLength(1);
    expect(configuration.notices).toEqual([
      "SLUICE_UPSTREAM_URL is set, so every model goes to it; the routes of sluice.yaml are not used",
    ]);
    const named = configured(text, { ...engine, SLUICE_UPSTREAM_MODEL: "one" });
    expect(routes(named)).toEqual(["acme/writer-1 → environment http://127.0.0.1:8000/v1 one"]);
  });

  test("a file of plans says nothing about engines, and several upstreams need no models then", () => {
    const plans = configured("plans: { team: {} }", engine);
    expect(plans.notices).toEqual([]);
    expect(routes(plans)[0]).toContain("→ environment");
    const upstreams = 'upstreams: { a: { url: "http://a" }, b: { url: "http://b" } }';
    expect(configured(upstreams, engine).catalog.models.size).toBe(31);
  });

  test("the file is checked all the same", () => {
    expect(problemsOf("plans: { team: { session: 0 } }", engine)).toHaveLength(1);
  });
});

describe("which file is read", () => {
  test("./sluice.yaml where it exists, else the one that SLUICE_CONFIG names", () => {
    const asked: string[] = [];
    const read = (env: Record<string, string>) =>
      loadConfiguration({
        env,
        readFile: (path) => {
          asked.push(path);
          return new TextEncoder().encode("plans: {}");
        },
      });
    read({});
    read({ SLUICE_CONFIG: "/etc/sluice/main.yaml" });
    expect(asked).toEqual(["./sluice.yaml", "/etc/sluice/main.yaml"]);
  });

  test("a file that cannot be read is a problem, and sluice.yml is pointed at", () => {
    const refusing = (code: string) =>
      loadConfiguration({
        env: {},
        readFile: () => {
          throw Object.assign(new Error("no"), { code });
        },
      }) as ConfigurationError;
    expect(refusing("EACCES").problems).toEqual(["./sluice.yaml: cannot be read: this user cannot read it"]);
    expect(refusing("EISDIR").problems).toEqual(["./sluice.yaml: cannot be read: it is a folder"]);
    expect(refusing("EIO").problems).toEqual(["./sluice.yaml: cannot be read: EIO"]);
    const misnamed = loadConfiguration({
      env: {},
      readFile: (path) => (path.endsWith(".yml") ? new Uint8Array() : null),
    }) as Configuration;
    expect(misnamed.notices).toEqual(["./sluice.yml is not read; rename it to sluice.yaml, or set SLUICE_CONFIG"]);
  });

  test("from disk: bounded, null where there is none, an error where it is a folder", () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-config-"));
    try {
      const file = join(folder, "sluice.yaml");
      expect(readFileBounded(file)).toBeNull();
      expect(readFileBounded(join(file, "below"))).toBeNull();
      writeFileSync(file, "plans: {}");
      expect(new TextDecoder().decode(readFileBounded(file) ?? undefined)).toBe("plans: {}");
      expect(readFileBounded(join(file, "below"))).toBeNull();
      expect(readFileBounded("/dev/zero")?.byteLength).toBe(1024 * 1024 + 1);
      expect(() => readFileBounded(folder)).toThrow("EISDIR");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("the words that would name an engine in a log are its address and its names of models, the longest first", () => {
  const text = `upstreams: { main: { url: "http://gpu-7.internal:8000/v1" } }
metering: { currency: USD }
models:
  - { id: acme/one, created: 1, context_window: 10, prices: { input: 0.001, output: 0.001 }, routes: [{ upstream: main, model: writer-awq }, { upstream: main, model: acme/one }] }`;
  expect(engineNames(configured(text))).toEqual([
    "http://gpu-7.internal:8000/v1",
    "gpu-7.internal:8000",
    "gpu-7.internal",
    "writer-awq",
  ]);
});

/** A configuration that was read from this text, with a function that reloads it from the file's current content. */
function reloading(text: string | null, env: Record<string, string> = {}) {
  let written = text;
  const first = configured(text, env);
  const configuration = reloadable(first, { load: () => load(written, env) });
  const reload = (next: string | null, ...more: Parameters<typeof configuration.reload>) => {
    written = next;
    return configuration.reload(...more);
  };
  const plans = () => [...configuration.current().catalog.plans.keys()];
  return { first, configuration, reload, plans };
}

describe("a reload", () => {
  test("puts a good file in force, and leaves the old one in force where the new one is bad", async () => {
    const { first, configuration, reload, plans } = reloading("plans: { one: {} }");
    expect(configuration.current()).toBe(first);
    expect((await reload("plans: { two: {} }")).ok).toBe(true);
    expect(plans()).toContain("two");
    expect([...first.catalog.plans.keys()]).toContain("one");
    expect(await reload("plans: { three: { session: 0 } }")).toEqual({
      ok: false,
      problems: [
        expect.stringContaining("./sluice.yaml:1:28: plans.three.session: must be an amount from 0.000000001"),
      ],
    });
    expect(plans()).toContain("two");
    expect((await reload(null)).ok).toBe(true);
    expect(plans()).not.toContain("two");
  });

  test("is put to the other processes, which learn of every refusal, and changes nothing unless all agree", async () => {
    const { first, configuration, reload } = reloading("plans: { one: {} }");
    const asked: (readonly string[])[] = [];
    const agree = (answer: string[]) => async (own: readonly string[]) => {
      asked.push(own);
      return [...own, ...answer];
    };
    const two = "plans: { two: {} }";
    const refused = { ok: false, problems: ["worker 2: no"] };
    expect(await reload(two, undefined, agree(refused.problems))).toEqual(refused as never);
    expect(configuration.current()).toBe(first);
    const throws = () => Promise.reject(new Error("the database is away"));
    expect((await reload(two, throws, agree([]))).ok).toBe(false);
    expect((await reload("plans: { three: { session: 0 } }", undefined, agree([]))).ok).toBe(false);
    expect(asked).toEqual([[], ["the database is away"], [expect.stringContaining("plans.three.session")]]);
    expect((await reload(two, undefined, agree([]))).ok).toBe(true);
  });

  test("does not change the number of workers, and says so", async () => {
    const stores = { DATABASE_URL: "postgres://x@y/z", REDIS_URL: "redis://x" };
    expect(configured("server: { workers: auto }", stores).server.workers).toBe("auto");
    expect(configured("server: { workers: 2 }", { ...stores, SLUICE_WORKERS: "3" }).server.workers).toBe(3);
    const { configuration, reload } = reloading("server: { workers: 2 }", stores);
    await reload("server: { workers: 4 }");
    expect(configuration.current().server.workers).toBe(2);
    expect(configuration.current().notices).toEqual(["server changed in the file; restart the service to apply this"]);
  });

  test("comes into force only when what it needs is ready, and not at all where that fails", async () => {
    const first = configured(null);
    let fails = true;
    const configuration = reloadable(first, {
      load: () => load(null),
      prepare: async (next, before) => {
        expect(before).toBe(first);
        if (fails) throw new Error("the simulator cannot listen");
        return withSimulatorAt(next, "http://127.0.0.1:1/v1");
      },
    });
    expect(await configuration.reload()).toEqual({ ok: false, problems: ["the simulator cannot listen"] });
    expect(configuration.current()).toBe(first);
    fails = false;
    expect((await configuration.reload()).ok).toBe(true);
    expect(configuration.current().upstreams[0]?.url).toBe("http://127.0.0.1:1/v1");
  });

  test("is refused with the reasons against it, and nothing changes", async () => {
    const { first, configuration, reload } = reloading("plans: { gold: {} }");
    const asked: string[][] = [];
    const outcome = await reload("plans: { silver: {} }", async ({ catalog }) => {
      asked.push([...catalog.plans.keys()]);
      return ["gold is in use"];
    });
    expect(outcome).toEqual({ ok: false, problems: ["gold is in use"] });
    expect(asked).toEqual([["starter", "pro", "unlimited", "silver"]]);
    expect(configuration.current()).toBe(first);
    expect((await configuration.reload(async () => [])).ok).toBe(true);
  });

  test("has another hash where what is served differs, and only there", async () => {
    const hashOf = (text: string | null, env: Record<string, string> = {}) => configurationHash(configured(text, env));
    const base = hashOf("plans: { a: { session: 1 }, b: {} }\nlimits: { drain_ms: 5 }");
    expect(base).toMatch(/^[0-9a-f]{16}$/);
    const same = hashOf("limits: { drain_ms: 5 }\nplans: { b: {}, a: { session: 1 } }", {
      PORT: "1",
      DATABASE_URL: "postgres://x",
    });
    expect(same).toBe(base);
    for (const other of [
      "plans: { a: { session: 2 }, b: {} }\nlimits: { drain_ms: 5 }",
      "plans: { a: { session: 1 }, b: {} }",
      null,
    ])
      expect(hashOf(other)).not.toBe(base);
    // The simulator's address differs from node to node, so it is not part of the hash. Of an engine's key, the hash
    // covers only whether it is set.
    const first = configured(null);
    expect(configurationHash(withSimulatorAt(first, "http://127.0.0.1:1/v1"))).toBe(configurationHash(first));
    const engine = { SLUICE_UPSTREAM_URL: "http://engine" };
    const keyed = hashOf(null, { ...engine, SLUICE_UPSTREAM_KEY: "one" });
    expect(keyed).toBe(hashOf(null, { ...engine, SLUICE_UPSTREAM_KEY: "two" }));
    expect(keyed).not.toBe(hashOf(null, engine));
  });

  test("leaves metering and limits as they were at the start, and says so", async () => {
    const { first, configuration, reload } = reloading("limits: { drain_ms: 5 }");
    await reload("limits: { drain_ms: 6 }\nmetering: { lease_s: 30 }\nplans: { team: {} }");
    const { limits, metering, catalog, notices } = configuration.current();
    expect([limits, metering]).toEqual([first.limits, first.metering]);
    expect(catalog.plans.has("team")).toBe(true);
    expect(notices).toEqual(["metering and limits changed in the file; restart the service to apply this"]);
    await reload("limits: { drain_ms: 5 }");
    expect(configuration.current().notices).toEqual([]);
  });

  test("two at once run one after the other, and the last wins", async () => {
    const finish: (() => void)[] = [];
    let loads = 0;
    const configuration = reloadable(configured(null), {
      load: () => load(`plans: { number${++loads}: {} }`),
      prepare: (next) => new Promise((resolve) => finish.push(() => resolve(next))),
    });
    const both = Promise.all([configuration.reload(), configuration.reload()]);
    while (finish.length < 1) await Promise.resolve();
    expect(loads).toBe(1);
    finish[0]?.();
    while (finish.length < 2) await Promise.resolve();
    finish[1]?.();
    await both;
    expect(configuration.current().catalog.plans.has("number2")).toBe(true);
  });
});

test("certificates and keys that variables name are read at the start, and a wrong one is named", () => {
  const own = { SLUICE_TLS_CERTIFICATE_FILE: "/tls/own.pem", SLUICE_TLS_KEY_FILE: "/tls/own.key" };
  const redis = { REDIS_URL: "rediss://redis:6379", REDIS_CA_FILE: "/tls/ca.pem" };
  const shown = { REDIS_CERTIFICATE_FILE: "/tls/shown.pem", REDIS_KEY_FILE: "/tls/shown.key" };
  const refused = problemsOf(null, { ...own, ...redis, ...shown });
  expect(refused).toEqual([
    "SLUICE_TLS_CERTIFICATE_FILE and SLUICE_TLS_KEY_FILE name /tls/own.pem, which does not exist",
    "REDIS_CERTIFICATE_FILE and REDIS_KEY_FILE name /tls/shown.pem, which does not exist",
    "REDIS_CA_FILE names /tls/ca.pem, which does not exist",
  ]);
});
