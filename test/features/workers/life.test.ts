/** A node of several workers is one node: it serves, loses workers, reloads, drains and ends as one, and loses no record. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, model, says, words } from "../../harness/engine.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { until } from "../../harness/until.ts";
import { isGone, own, said, startWorkers, sumOf, type WorkersNode, workerOf } from "./node.ts";

setDefaultTimeout(120_000);

const streamed = (node: WorkersNode, directives: string, text: string) =>
  node.post("/v1/chat/completions", { model, messages: says(directives, text), stream: true }, own);
const manyStreamed = (node: WorkersNode, count: number, directives: string, text: string) =>
  Promise.all(Array.from({ length: count }, () => streamed(node, directives, text)));
const metricsOf = async (node: WorkersNode) => (await node.fetch("/metrics", { ...own, key: null })).text();
const idOf = (response: Response) => response.headers.get("x-service-request-id")!;

test("every worker serves, each line of the log names its own, and the metrics are the node's", async () => {
  const node = await startWorkers({ workers: "3" });
  const answers = await Promise.all(Array.from({ length: 60 }, () => node.fetch("/v1/models", own)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const served = new Set(await Promise.all(answers.map((answer) => workerOf(node, idOf(answer)))));
  expect([...served].sort()).toEqual([1, 2, 3]);
  for (let look = 0; look < 6; look++) {
    const metrics = await metricsOf(node);
    expect(metrics).toContain('http_requests_total{route="/v1/models",status="200",code=""} 60\n');
    expect(metrics).toMatch(/process_resident_memory_bytes\{worker="3"\} \d{7,}/);
    expect(metrics).toContain('node_workers{state="serving"} 3\n');
  }
  const open = await node.fetch("/metrics", { headers: { ...own.headers, accept: "application/openmetrics-text" } });
  const text = await open.text();
  expect(text).toContain('http_requests_total{route="/v1/models",status="200",code=""} 60\n');
  expect(text).toEndWith("\n# EOF\n");
  expect(await node.stop()).toBe(0);
});

describe("a worker that is killed", () => {
  test("is replaced; its requests are settled once, others' streams go on, and counters do not fall", async () => {
    const node = await startWorkers({ metering: "{ lease_s: 1, checkpoint_s: 0.2, sweep_s: 0.2 }" });
    const responses = await manyStreamed(node, 24, "tps=15", words(150));
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    const counted = async () => sumOf(await metricsOf(node), "admission_decisions_total");
    const before = await counted();
    expect(before).toBe(24);
    process.kill(node.pids().get(1)!, "SIGKILL");
    const [whole, cut] = [new Set<string>(), new Set<string>()];
    await Promise.all(
      responses.map(async (response) => {
        const text = await response.text().catch(() => "");
        (text.endsWith("data: [DONE]\n\n") ? whole : cut).add(idOf(response));
      }),
    );
    expect(cut.size).toBeGreaterThan(0);
    expect(whole.size).toBeGreaterThan(0);
    for (const id of whole) expect(await workerOf(node, id)).toBe(2);
    // The lost worker logged nothing of its requests.
    for (const id of cut) expect(node.stderr()).not.toContain(id);
    await until(() => said(node, "worker_serving") === 3, 20_000, "the worker in its place");
    expect([...node.pids().keys()]).toEqual([1, 2]);
    const ids = responses.map(idOf);
    await until(async () => (await node.records(ids)).every((count) => count === 1), 20_000, "a record of each");
    expect(await counted()).toBeGreaterThanOrEqual(before);
    for (const id of cut)
      expect(await (await node.fetch(`/v1/service/requests/${id}`)).json()).toMatchObject({ recovered: true });
    expect((await node.cli("usage", "check")).code).toBe(0);
    expect(await node.records(ids)).toEqual(ids.map(() => 1));
    expect(await node.stop()).toBe(0);
  });

  test("again and again is started after pauses, while the others serve", async () => {
    const node = await startWorkers();
    for (let deaths = 1; deaths <= 3; deaths++) {
      process.kill(node.pids().get(2)!, "SIGKILL");
      await until(() => said(node, "worker_lost") === deaths, 10_000, `death ${deaths}`);
      expect((await node.fetch("/v1/models", own)).status).toBe(200);
      await until(() => said(node, "worker_serving") === 2 + deaths, 30_000, `worker ${deaths} in its place`);
    }
    const pauses = linesOf(node, "worker_lost").map(({ again_ms }) => again_ms as number);
    expect(pauses[1]).toBe(pauses[0]! * 2);
    expect(pauses[2]).toBe(pauses[0]! * 4);
    expect(await metricsOf(node)).toContain("node_worker_deaths_total 3\n");
    expect(await node.stop()).toBe(0);
  });
});

describe("a drain", () => {
  test("is one, when the supervisor and all workers get the signal at once: streams end whole", async () => {
    const node = await startWorkers();
    const streams = (await manyStreamed(node, 8, "tps=40", words(60))).map(eventsOf);
    const all = [node.pid, ...node.pids().values()];
    for (const signal of ["SIGTERM", "SIGTERM"] as const) for (const pid of all.slice(1)) process.kill(pid, signal);
    process.kill(node.pid, "SIGTERM");
    for (const data of await Promise.all(streams)) {
      expect(data.at(-1)).toBe("[DONE]");
      expect(data.join("")).toContain('"finish_reason":"stop"');
    }
    expect(await node.exited).toBe(0);
    expect(await linesThen(node, "stopped", 2)).toHaveLength(2);
    expect(said(node, "draining")).toBe(2);
    expect(said(node, "worker_lost")).toBe(0);
    await node.stop();
  });

  test("does not wait after a second signal: what runs ends with its protocol's error", async () => {
    const node = await startWorkers();
    const streams = (await manyStreamed(node, 8, "tps=5", words(500))).map(eventsOf);
    node.signal("SIGTERM");
    await until(() => said(node, "draining") === 2, 5000, "both to drain");
    node.signal("SIGTERM");
    for (const data of await Promise.all(streams)) {
      expect(JSON.parse(data.at(-2) ?? "")).toMatchObject({ error: { code: "draining" } });
    }
    expect(await node.exited).toBe(0);
    await node.stop();
  });

  test("in which a worker crashes ends with an exit code and a line in the log that say so", async () => {
    const node = await startWorkers();
    const streams = await manyStreamed(node, 8, "tps=5", words(500));
    const over = Promise.allSettled(streams.map((stream) => stream.text()));
    node.signal("SIGTERM");
    await until(() => said(node, "draining") === 2, 5000, "both to drain");
    process.kill(node.pids().get(2)!, "SIGKILL");
    await linesThen(node, "worker_lost", 1);
    node.signal("SIGTERM");
    await over;
    expect(await node.exited).toBe(1);
    expect(linesOf(node, "worker_lost")).toMatchObject([{ worker: 2, signal: "SIGKILL" }]);
    await node.stop();
  });

  test("of one worker alone, by its own signal, ends in another in its place, and loses no connection", async () => {
    const node = await startWorkers();
    let isReplaced = false;
    const connecting = connectingUntil(() => isReplaced, Number(new URL(node.url).port));
    process.kill(node.pids().get(1)!, "SIGTERM");
    await until(() => said(node, "worker_serving") === 3, 20_000, "the worker in its place");
    isReplaced = true;
    const outcomes = await connecting;
    expect(outcomes.length).toBeGreaterThan(20);
    expect([...new Set(outcomes)]).toEqual(["answered"]);
    expect(await linesThen(node, "stopped", 1)).toHaveLength(1);
    expect((await node.fetch("/readyz", { ...own, key: null })).status).toBe(200);
    expect(await node.stop()).toBe(0);
  });
});

/**
 * Opens a connection each 10 ms, and returns what became of each. A connection that begins while its worker closes the
 * port is made a second later: its first packet is dropped, and the client tries again.
 */
async function connectingUntil(isOver: () => boolean, port: number): Promise<string[]> {
  const outcomes: Promise<string>[] = [];
  while (!isOver()) {
    outcomes.push(outcomeOf(connect({ port, host: "127.0.0.1" })));
    await Bun.sleep(10);
  }
  return Promise.all(outcomes);
}

function outcomeOf(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let answer = "";
  socket.on("connect", () => socket.write("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", ({ message }) => resolve(message));
  socket.on("close", () => resolve(answer.startsWith("HTTP/1.1 200 ") ? "answered" : `closed after '${answer}'`));
  return promise;
}

test("without their supervisor, workers finish what runs and end: the port is free", async () => {
  const node = await startWorkers();
  const workers = [...node.pids().values()];
  const streams = (await manyStreamed(node, 8, "tps=40", words(60))).map(eventsOf);
  process.kill(node.pid, "SIGKILL");
  for (const data of await Promise.all(streams)) expect(data.at(-1)).toBe("[DONE]");
  await until(() => workers.every(isGone), 10_000, "the workers to end");
  const again = Bun.serve({ port: Number(new URL(node.url).port), hostname: "127.0.0.1", fetch: () => new Response() });
  await again.stop(true);
  await node.stop();
});

describe("a reload", () => {
  const config = (id: string) => `metering: { currency: USD }
models:
  - id: acme/${id}
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, output: 0.002 }
    routes: [{ upstream: simulator, model: x }]
`;

  test("reaches every worker, or is refused by all; a worker in another's place serves what is in force", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-workers-"));
    const file = join(folder, "sluice.yaml");
    writeFileSync(file, config("first"));
    const node = await startWorkers({ workers: "3", env: { SLUICE_CONFIG: file } });
    const ids = async () => {
      const lists = await Promise.all(Array.from({ length: 40 }, () => node.fetch("/v1/models", own)));
      const bodies = (await Promise.all(lists.map((list) => list.json()))) as { data: { id: string }[] }[];
      return [...new Set(bodies.map(({ data }) => data[0]!.id))];
    };
    expect(await ids()).toEqual(["acme/first"]);
    writeFileSync(file, config("second"));
    node.signal("SIGHUP");
    await until(() => said(node, "configuration_reloaded") === 3, 10_000, "every worker");
    expect(await ids()).toEqual(["acme/second"]);
    writeFileSync(file, "models: [\n");
    node.signal("SIGHUP");
    await until(() => said(node, "configuration_refused") === 3, 10_000, "every refusal");
    expect(await ids()).toEqual(["acme/second"]);
    process.kill(node.pids().get(2)!, "SIGKILL");
    await until(() => said(node, "worker_serving") === 4, 20_000, "the worker in its place");
    expect(await ids()).toEqual(["acme/second"]);
    expect((await metricsOf(node)).match(/^configuration_info\{/gm)).toHaveLength(1);
    expect(await node.stop()).toBe(0);
    rmSync(folder, { recursive: true });
  });
});
