/**
 * Engines compare model names exactly, so a model of the default catalog is requested in the spelling that the engine
 * lists.
 */
import { expect, test } from "bun:test";
import type { Configuration } from "../../src/config/configuration.ts";
import { configurationHash } from "../../src/config/hash.ts";
import { asSpelled } from "../../src/config/spelling.ts";
import { configured, type Variables, withModel } from "./reading.ts";

const engine = { SLUICE_UPSTREAM_URL: "http://127.0.0.1:8000", SLUICE_UPSTREAM_KEY: "slumber" };
const one = 'upstreams: { main: { url: "http://127.0.0.1:9000/v1", api_key: k, headers: { X-Own: "1" } } }';

/**
 * Loads the configuration while the engine lists these names (null: it does not respond). Returns the configuration and
 * the number of requests that the engine got.
 */
async function spelled(names: string[] | null, text: string | null = null, env: Variables = engine) {
  const asked: { url: string; headers: unknown }[] = [];
  const configuration = await asSpelled(configured(text, env), async (url, { headers }) => {
    asked.push({ url, headers });
    if (names === null) throw new Error("refused");
    return Response.json({ data: names.map((id) => ({ id })) });
  });
  return { configuration, asked, sent: (id: string) => sentFor(configuration, id) };
}

const sentFor = ({ catalog }: Configuration, id: string) => catalog.models.get(id)!.routes[0]!.model;

test("an engine with one model is asked for it, by whatever id, with its key", async () => {
  const { sent, asked, configuration } = await spelled(["Qwen/Qwen3-32B"]);
  expect([sent("qwen/qwen3-32b"), sent("meta-llama/llama-3.1-8b-instruct")]).toEqual(Array(2).fill("Qwen/Qwen3-32B"));
  expect(asked).toMatchObject([
    { url: "http://127.0.0.1:8000/v1/models", headers: { authorization: "Bearer slumber" } },
  ]);
  expect(configuration.notices).toEqual([]);
});

test("of several, each is asked for in the engine's capitals, and others by their public id", async () => {
  const { sent, configuration } = await spelled(["Qwen/Qwen3-32B", "meta-llama/llama-3.1-8b-instruct", "adapter"]);
  expect([sent("qwen/qwen3-32b"), sent("meta-llama/llama-3.1-8b-instruct"), sent("qwen/qwen3-coder")]).toEqual([
    "Qwen/Qwen3-32B",
    "meta-llama/llama-3.1-8b-instruct",
    "qwen/qwen3-coder",
  ]);
  expect(configuration.notices).toEqual([]);
});

test("one upstream of a file without models is asked too, with its headers", async () => {
  const { sent, asked } = await spelled(["Qwen/Qwen3-32B"], one, {});
  expect(sent("qwen/qwen3-32b")).toBe("Qwen/Qwen3-32B");
  expect(asked).toMatchObject([{ url: "http://127.0.0.1:9000/v1/models", headers: { "x-own": "1" } }]);
});

test("names that somebody wrote stand, and the engine is not asked; nor is the simulator", async () => {
  for (const [text, env] of [
    [null, { ...engine, SLUICE_UPSTREAM_MODEL: "qwen3:8b" }],
    [withModel(), engine],
    [withModel(), {}],
    [null, {}],
  ] as const) {
    const { configuration, asked } = await spelled(["other"], text, env);
    expect([configuration, asked]).toEqual([configured(text, env), []]);
  }
});

test("an engine that lists other names alone is asked by public ids, and a notice says what to do", async () => {
  const { sent, configuration } = await spelled(["a", "b"]);
  expect(sent("qwen/qwen3-32b")).toBe("qwen/qwen3-32b");
  expect(configuration.notices).toEqual([expect.stringContaining("lists several models")]);
  expect(configuration.notices[0]).toContain("set SLUICE_UPSTREAM_MODEL");
  expect(configuration.namesFrom?.isAwaited).toBe(false);
});

const unlisted: [() => Promise<Response>, string][] = [
  [async () => Promise.reject(new Error("refused")), "start it"],
  [async () => new Response("", { status: 503 }), "it still loads its model"],
  [async () => new Response("Bad Gateway", { status: 502 }), "answered 502"],
  [async () => new Response("", { status: 404 }), "answered 404"],
  [async () => new Response("", { status: 401 }), "refuses the key (401)"],
  [async () => Response.json({ data: [] }), "lists no models"],
];

test.each(unlisted)(
  "an engine is asked again until it lists a model, and the notice says why: %#",
  async (fetch, says) => {
    const waiting = await asSpelled(configured(null, engine), fetch);
    expect(sentFor(waiting, "qwen/qwen3-32b")).toBe("qwen/qwen3-32b");
    expect(waiting.notices).toEqual([expect.stringContaining(says)]);
    expect(waiting.notices[0]).toContain("set SLUICE_UPSTREAM_MODEL");
    expect(await asSpelled(waiting, fetch)).toBe(waiting);
    const ready = await asSpelled(waiting, async () => Response.json({ data: [{ id: "Qwen/Qwen3-32B" }] }));
    expect([sentFor(ready, "qwen/qwen3-32b"), ready.notices]).toEqual(["Qwen/Qwen3-32B", []]);
    expect(ready.namesFrom?.isAwaited).toBe(false);
  },
);

test("the notice follows the engine: one that starts to load is no longer to be started", async () => {
  const { configuration } = await spelled(null);
  const { notices } = await asSpelled(configuration, async () => new Response("", { status: 503 }));
  expect(notices).toEqual([expect.stringContaining("it still loads its model")]);
});

const away = async () => Promise.reject(new Error("refused"));
const lists = (id: string) => async () => Response.json({ data: [{ id }] });

test("of replicas all are asked, so that one that is away does not keep the names of the others", async () => {
  const text = one.replace("api_key", 'replicas: ["http://127.0.0.1:9001/v1"], api_key');
  const { catalog, namesFrom } = await asSpelled(configured(text, {}), async (url) =>
    url.includes(":9001/") ? lists("Qwen/Qwen3-32B")() : away(),
  );
  expect(catalog.models.get("qwen/qwen3-32b")!.routes.map(({ model }) => model)).toEqual(
    Array(2).fill("Qwen/Qwen3-32B"),
  );
  expect(namesFrom?.isAwaited).toBe(false);
});

test("a reload while the engine is away keeps its names, and it is asked again; another engine has its own", async () => {
  const { configuration } = await spelled(["Qwen/Qwen3-32B"]);
  const next = await asSpelled(configured(null, engine), away, configuration);
  expect([sentFor(next, "qwen/qwen3-32b"), next.namesFrom?.isAwaited]).toEqual(["Qwen/Qwen3-32B", true]);
  expect(next.notices).toHaveLength(1);
  expect(configurationHash(next)).toBe(configurationHash(configuration));
  const later = await asSpelled(next, lists("Qwen/Other"));
  expect([sentFor(later, "qwen/qwen3-32b"), later.notices]).toEqual(["Qwen/Other", []]);
  const elsewhere = configured(null, { ...engine, SLUICE_UPSTREAM_URL: "http://127.0.0.1:8001" });
  expect(sentFor(await asSpelled(elsewhere, away, configuration), "qwen/qwen3-32b")).toBe("qwen/qwen3-32b");
});

test("two nodes that learned the same names have the same hash", async () => {
  const [first, second] = [await spelled(["Qwen/Qwen3-32B"]), await spelled(["Qwen/Qwen3-32B"])];
  expect(configurationHash(first.configuration)).toBe(configurationHash(second.configuration));
  const written = configured(null, { ...engine, SLUICE_UPSTREAM_MODEL: "Qwen/Qwen3-32B" });
  expect(configurationHash(first.configuration)).toBe(configurationHash(written));
});
