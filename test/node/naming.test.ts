/** An engine that starts after Sluice is asked for its names once it runs. */
import { expect, test } from "bun:test";
import { freePort } from "../harness/daemon.ts";
import { startSimulator } from "../harness/simulator.ts";
import { startSluice } from "../harness/sluice.ts";
import { strictEngine } from "../harness/strict-engine.ts";
import { until } from "../harness/until.ts";

test("requests are answered without a restart, although the engine compares names", async () => {
  const port = await freePort();
  const simulator = await startSimulator();
  const sluice = await startSluice({ env: { SLUICE_UPSTREAM_URL: `http://127.0.0.1:${port}` } });
  const ask = async () => {
    const messages = [{ role: "user", content: "Hello" }];
    return (await sluice.post("/v1/chat/completions", { model: "qwen/qwen3-32b", messages })).status;
  };
  expect(await ask()).toBe(503);
  const engine = strictEngine(simulator.url, port);
  await until(async () => (await ask()) === 200, 20_000, "an answer");
  expect(await sluice.stop()).toBe(0);
  await engine.server.stop(true);
  await simulator.stop();
}, 60_000);
