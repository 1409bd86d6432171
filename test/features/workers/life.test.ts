/**
 * A node with several workers acts as one node when it serves, loses workers, reloads, drains and stops, and it loses
 * no record.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, model, plainModel, says, words } from "../../harness/engine.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { until } from "../../harness/until.ts";
import { isGone, own, said, startWorkers, sumOf, type WorkersNode, workerOf } from "./node.ts";

setDefaultTimeout(120_000);

const streamed = (node: WorkersNode, directives: string, text: string) =>
  node.post("/v1/chat/completions", { model, messages: says(directives, text), stream: true }, own);
const manyStreamed = async (node: WorkersNode, count: number, directives: string, text: string) => {
  const responses = await Promise.all(Array.from({ length: count }, () => streamed(node, directives, text)));
  for (const response of responses) if (response.status !== 200) throw new Error(await response.text());
  return responses;
};
const metricsOf = async (node: WorkersNode) => (await node.fetch("/metrics", { ...own, key: null })).text();
const idOf = (response: Response) => response.headers.get("x-service-request-id")!;

describe("a node of three workers", () => {
  let node: WorkersNode;
  beforeAll(async () => {
    node = await startWorkers({ workers: "3", metering: "{ lease_s: 3, checkpoint_s: 0.2, sweep_s: 0.2 }" });
  });
  afterAll(() => node?.stop());

  /** Returns a promise that resolves when `count` more workers have started to serve. */
  const served = (count = 1) => {
    const before = said(node, "worker_serving");
    return () => until(() => said(node, "worker_serving") === before + count, 30_000, "the worker in its place");
  };

  test("every worker serves, each line of the log names its own, and the metrics are the node's", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => node.fetch("/v1/models", own)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const workers = new Set(await Promise.all(answers.map((answer) => workerOf(node, idOf(answer)))));
    expect([...workers].sort()).toEqual([1, 2, 3]);
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
  });

  test("a killed worker is replaced; its requests are settled once, others' streams go on, and counters do not fall", async () => {
    const isReplaced = served();
    const responses = await manyStreamed(node, 24, "tps=20", words(80));
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
    for (const id of whole) expect(await workerOf(node, id)).toBeGreaterThan(1);
    // The killed worker logged no line about its requests.
    for (const id of cut) expect(node.stderr()).not.toContain(id);
    await isReplaced();
    expect([...node.pids().keys()]).toEqual([1, 2, 3]);
    const ids = responses.map(idOf);
    await until(async () => (await node.records(ids)).every((count) => count === 1), 20_000, "a record of each");
    expect(await counted()).toBeGreaterThanOrEqual(before);
    for (const id of cut)
      expect(await (await node.fetch(`/v1/service/requests/${id}`)).json()).toMatchObject({ recovered: true });
    expect((await node.cli("usage", "check")).code).toBe(0);
    expect(await node.records(ids)).toEqual(ids.map(() => 1));
  });

  test("one that dies again and again is started after pauses, while the others serve", async () => {
    const before = linesOf(node, "worker_lost").length;
    for (let deaths = 1; deaths <= 3; deaths++) {
      const isReplaced = served();
      process.kill(node.pids().get(2)!, "SIGKILL");
      await until(() => said(node, "worker_lost") === before + deaths, 10_000, `death ${deaths}`);
      expect((await node.fetch("/v1/models", own)).status).toBe(200);
      await isReplaced();
    }
    const [, second, third] = linesOf(node, "worker_lost")
      .slice(before)
      .map(({ again_ms }) => again_ms as number);
    // The first worker had run for a while, so it may be replaced without a pause; the later ones died soon after their
    // start.
    expect(second).toBeGreaterThan(0);
    expect(third).toBe(second! * 2);
    expect(await metricsOf(node)).toContain(`node_worker_deaths_total ${before + 3}\n`);
  });

  test("one that gets a signal of its own drains, another takes its place, and no connection is lost", async () => {
    const [isServed, stopped] = [served(), said(node, "stopped")];
    let isReplaced = false;
    const connecting = connectingUntil(() => isReplaced, Number(new URL(node.url).port));
    process.kill(node.pids().get(1)!, "SIGTERM");
    await isServed();
    isReplaced = true;
    const outcomes = await connecting;
    expect(outcomes.length).toBeGreaterThan(20);
    expect([...new Set(outcomes)]).toEqual(["answered"]);
    expect(await linesThen(node, "stopped", stopped + 1)).toHaveLength(stopped + 1);
    expect((await node.fetch("/readyz", { ...own, key: null })).status).toBe(200);
  });

  test("a reload reaches every worker, or is refused by all; a worker in another's place serves what is in force", async () => {
    const file = join(node.dataDir, "../sluice.yaml");
    const first = readFileSync(file, "utf8");
    const reload = async (text: string, event: string) => {
      writeFileSync(file, text);
      node.signal("SIGHUP");
      await until(() => said(node, event) === 3, 10_000, `every ${event}`);
    };
    /** The names under which any worker lists the model: its old name, the name that the reload gives it, or both. */
    const listed = async () => {
      const lists = await Promise.all(Array.from({ length: 40 }, () => node.fetch("/v1/models", own)));
      const bodies = (await Promise.all(lists.map((list) => list.json()))) as { data: { id: string }[] }[];
      const ids = bodies.flatMap(({ data }) => data.map(({ id }) => id));
      return [...new Set(ids)].filter((id) => [plainModel, "acme/renamed-1"].includes(id));
    };
    expect(await listed()).toEqual([plainModel]);
    await reload(first.replace(`id: ${plainModel}\n`, "id: acme/renamed-1\n"), "configuration_reloaded");
    expect(await listed()).toEqual(["acme/renamed-1"]);
    await reload("models: [\n", "configuration_refused");
    expect(await listed()).toEqual(["acme/renamed-1"]);
    const isReplaced = served();
    process.kill(node.pids().get(2)!, "SIGKILL");
    await isReplaced();
    expect(await listed()).toEqual(["acme/renamed-1"]);
    expect((await metricsOf(node)).match(/^configuration_info\{/gm)).toHaveLength(1);
  });

  // This test is the last one on this node, because it stops the node.
  test("a drain is one, when the supervisor and all workers get the signal at once: streams end whole", async () => {
    const [draining, stopped, lost] = ["draining", "stopped", "worker_lost"].map((event) => said(node, event));
    const streams = (await manyStreamed(node, 8, "tps=40", words(60))).map(eventsOf);
    const all = [node.pid, ...node.pids().values()];
    for (const signal of ["SIGTERM", "SIGTERM"] as const) for (const pid of all.slice(1)) process.kill(pid, signal);
    process.kill(node.pid, "SIGTERM");
    for (const data of await Promise.all(streams)) {
      expect(data.at(-1)).toBe("[DONE]");
      expect(data.join("")).toContain('"finish_reason":"stop"');
    }
    expect(await node.exited).toBe(0);
    expect(await linesThen(node, "stopped", stopped! + 3)).toHaveLength(stopped! + 3);
    expect(said(node, "draining")).toBe(draining! + 3);
    expect(said(node, "worker_lost")).toBe(lost!);
  });
});

/**
 * Opens a connection every 10 ms, and returns the outcome of each. A connection to a worker that is just closing the
 * port succeeds a second later: its first packet is dropped, and the kernel sends it again.
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

test("a worker in another's place has what takes effect only at a start from the node's start; a reload changes the supervisor's log, too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-workers-"));
  const addressFile = join(folder, "database-url");
  const node = await startWorkers({ addressFile });
  const file = join(node.dataDir, "../sluice.yaml");
  const logged = (event: string) => node.stderr().split(` event=${event} `).length - 1;
  writeFileSync(addressFile, "postgres://nobody@127.0.0.1:1/elsewhere");
  const more = "limits: { body_bytes_max: 2048 }\nlog: { format: logfmt }\n";
  writeFileSync(file, readFileSync(file, "utf8") + more);
  node.signal("SIGHUP");
  await until(() => logged("configuration_reloaded") === 2, 10_000, "both to reload");
  process.kill(node.pids().get(2)!, "SIGKILL");
  await until(() => logged("worker_lost") === 1, 10_000, "the supervisor to tell of it in the new form");
  await until(() => logged("worker_serving") === 1, 30_000, "the worker in its place");
  const body = { model, messages: says("tokens=2", words(1000)) };
  const answers = await Promise.all(Array.from({ length: 40 }, () => node.post("/v1/chat/completions", body, own)));
  expect([...new Set(answers.map(({ status }) => status))]).toEqual([200]);
  expect((await metricsOf(node)).match(/^configuration_info\{/gm)).toHaveLength(1);
  await node.stop();
  rmSync(folder, { recursive: true });
});

test("a second signal ends a drain: what runs ends with its protocol's error; a crash meanwhile is told, and fails the node", async () => {
  const node = await startWorkers();
  const streams = (await manyStreamed(node, 16, "tps=5", words(500))).map(eventsOf);
  const over = Promise.allSettled(streams);
  node.signal("SIGTERM");
  await until(() => said(node, "draining") === 2, 5000, "both to drain");
  process.kill(node.pids().get(2)!, "SIGKILL");
  await linesThen(node, "worker_lost", 1);
  node.signal("SIGTERM");
  const ended = (await over).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  // The streams of the killed worker broke off.
  const whole = ended.filter((data) => data.at(-1) === "[DONE]");
  expect(whole.length).toBeGreaterThan(0);
  for (const data of whole) expect(JSON.parse(data.at(-2) ?? "")).toMatchObject({ error: { code: "draining" } });
  expect(await node.exited).toBe(1);
  expect(linesOf(node, "worker_lost")).toMatchObject([{ worker: 2, signal: "SIGKILL" }]);
  await node.stop();
});

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
