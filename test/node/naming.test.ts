/** An engine that starts after Sluice is asked for its models' names once it runs. */
import { expect, test } from "bun:test";
import { reloadable } from "../../src/config/reload.ts";
import type { Log } from "../../src/core/http/log.ts";
import { namedLater } from "../../src/node/naming.ts";
import { configured } from "../config/reading.ts";
import { freePort } from "../harness/daemon.ts";
import { startSimulator } from "../harness/simulator.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { strictEngine } from "../harness/strict-engine.ts";
import { until } from "../harness/until.ts";

async function asked(sluice: Sluice): Promise<number> {
  const messages = [{ role: "user", content: "Hello" }];
  return (await sluice.post("/v1/chat/completions", { model: "qwen/qwen3-32b", messages })).status;
}

test("requests are answered without a restart, although the engine compares names", async () => {
  const port = await freePort();
  const simulator = await startSimulator();
  const sluice = await startSluice({ env: { SLUICE_UPSTREAM_URL: `http://127.0.0.1:${port}` } });
  expect(await asked(sluice)).toBe(503);
  const engine = strictEngine(simulator.url, port);
  await until(async () => (await asked(sluice)) === 200, 20_000, "an answer");
  await until(() => sluice.stderr().includes('"engine_names"'), 10_000, "the names in the log");
  expect(await sluice.stop()).toBe(0);
  await engine.server.stop(true);
  await simulator.stop();
}, 60_000);

test("an engine that was started anew with another model is asked for its name, and requests are answered again", async () => {
  const simulator = await startSimulator();
  const port = await freePort();
  const first = strictEngine(simulator.url, port);
  const sluice = await startSluice({ env: { SLUICE_UPSTREAM_URL: first.url } });
  await until(async () => (await asked(sluice)) === 200, 20_000, "an answer");
  await first.server.stop(true);
  const second = strictEngine(simulator.url, port, "Qwen/Qwen3-Coder-30B");
  await until(async () => (await asked(sluice)) === 200, 60_000, "an answer by the other name");
  expect(sluice.stderr()).toContain('"upstream_refused"');
  expect(await sluice.stop()).toBe(0);
  await second.server.stop(true);
  await simulator.stop();
}, 120_000);

test("the log says it if an engine that starts later has other names", async () => {
  const fetch = () => Response.json({ data: [{ id: "a" }, { id: "b" }] });
  const engine = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  const first = configured(null, { SLUICE_UPSTREAM_URL: `http://127.0.0.1:${engine.port}` });
  const events: unknown[] = [];
  const log = { event: (...event: unknown[]) => void events.push(event) } as unknown as Log;
  const naming = namedLater(reloadable(first, { load: () => first }), log);
  await until(() => events.length === 2, 20_000, "two events");
  expect(events).toEqual([
    ["warn", "notice", { notice: expect.stringContaining("lists several models") }],
    ["info", "engine_names", { hash: expect.any(String) }],
  ]);
  await naming.stop();
  await engine.stop(true);
}, 60_000);
