/**
 * Engines that an operator drains: they get no new request within a second, running ones finish, and the drain lasts.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Drain } from "../../src/admin/management/upstreams.ts";
import { type SluiceOptions, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { configOf } from "./config.ts";
import { type Rig, startRig, upstreamNames } from "./rig.ts";

setDefaultTimeout(60_000);

const [first, second] = upstreamNames as [string, string];
let rig: Rig;

beforeAll(async () => {
  const both = (id: string) => ({ id: `acme/${id}`, routes: [0, 1].map((wall) => ({ wall, model: id })) });
  rig = await startRig([both("ok-spread"), both("s06-running")]);
});
afterAll(() => rig.stop());

const ask = (model: string) =>
  rig.sluice.post("/v1/chat/completions", {
    model: `acme/${model}`,
    messages: [{ role: "user", content: crypto.randomUUID() }],
  });
const askedOf = (wall: number, model: string) => rig.walls[wall]!.asked.filter((one) => one === model).length;
const drained = () => rig.sluice.json<Drain[]>("upstream", "drained");
/**
 * How many routes of the model `ok-spread` are drained. The engines' names are not read, because not every port shows
 * them.
 */
const drainedRoutes = async () => {
  const metrics = await (await rig.sluice.fetch("/metrics")).text();
  const line = /^upstream_routes\{model="acme\/ok-spread",.*state="drained"\} (\d)/m;
  return Number(line.exec(metrics)?.[1] ?? 0);
};

test("a drained engine gets no new requests within a second, and again once it is resumed; nothing fails", async () => {
  expect((await rig.sluice.cli("upstream", "drain", first)).stdout).toContain(first);
  await until(async () => (await drainedRoutes()) === 1, 1_000);
  const before = askedOf(0, "ok-spread");
  for (let count = 0; count < 20; count++) expect((await ask("ok-spread")).status).toBe(200);
  expect(askedOf(0, "ok-spread")).toBe(before);
  expect(await drained()).toMatchObject([{ upstream: first, replica: null, until: null }]);

  expect((await rig.sluice.cli("upstream", "resume", first)).code).toBe(0);
  await until(async () => (await drainedRoutes()) === 0, 1_000);
  await until(async () => {
    await ask("ok-spread");
    return askedOf(0, "ok-spread") > before;
  });
  const log = await rig.sluice.json<{ action: string; subject: string }[]>("audit", "list");
  const acts = log.filter(({ subject }) => subject === first).map(({ action }) => action);
  expect(acts.sort()).toEqual(["upstream.drain", "upstream.resume"]);
});

test("a model whose engines are all drained is refused with the time to come back, until the drain's end", async () => {
  const at = new Date(Date.now() + 4_000).toISOString();
  for (const name of [first, second]) await rig.sluice.json("upstream", "drain", name, "--until", at);
  await until(async () => (await drainedRoutes()) === 2);
  const refused = await ask("ok-spread");
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(await refused.json()).toMatchObject({ error: { code: "overloaded" } });
  await until(async () => (await ask("ok-spread")).status === 200, 15_000);
  expect(await drained()).toEqual([]);
});

test("a request that runs at an engine when it is drained is finished there", async () => {
  const running = ask("s06-running");
  await until(() => [0, 1].some((wall) => askedOf(wall, "s06-running") > 0));
  const wall = askedOf(0, "s06-running") > 0 ? 0 : 1;
  const name = upstreamNames[wall]!;
  await rig.sluice.json("upstream", "drain", name);
  await until(async () => (await drainedRoutes()) === 1);
  rig.walls[wall]!.resume("s06-running", "ok");
  expect((await running).status).toBe(200);
  await rig.sluice.json("upstream", "resume", name);
});

test("an engine that there is not, one that is not drained, and a time that is past are refused in words", async () => {
  const { code, stderr } = await rig.sluice.cli("upstream", "drain", "gpu-9");
  expect(code).toBe(1);
  expect(stderr).toContain(`The configuration has: ${first}, ${second}`);
  expect((await rig.sluice.cli("upstream", "resume", first)).stderr).toContain("sluice upstream drained");
  expect((await rig.sluice.cli("upstream", "drain", first, "--until", "2020-01-01")).stderr).toContain("is past");
  expect(await drained()).toEqual([]);
});

test("a drain outlasts a restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-drain-"));
  const config = configOf({ [first]: { url: rig.walls[0]!.url } }, { "ok-alone": [first] });
  const options: SluiceOptions = { config, store: "pglite", operatorsWords: [first], dataDir };
  const before = await startSluice(options);
  const { key } = before;
  const body = { model: "acme/ok-alone", messages: [{ role: "user", content: "hello" }] };
  expect((await before.post("/v1/chat/completions", body)).status).toBe(200);
  await before.json("upstream", "drain", first);
  await before.stop();
  const after = await startSluice(options);
  const answer = await after.post("/v1/chat/completions", body, { key });
  expect(await answer.json()).toMatchObject({ error: { code: "overloaded" } });
  await after.stop();
  rmSync(dataDir, { recursive: true });
});
