/**
 * The list of a database's nodes: of a node with a single process on the embedded database, and of one with several
 * workers.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Static } from "typebox";
import type { Node } from "../../src/admin/management/fleet-shape.ts";
import { wholeLines } from "../../src/features/workers/lines.ts";
import { isGone, startWorkers } from "../features/workers/node.ts";
import { busyness } from "../harness/busyness.ts";
import { freePort } from "../harness/daemon.ts";
import { model, says, startService } from "../harness/engine.ts";
import { program } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(60_000);

type Listed = Static<typeof Node>;
const ask = { model, messages: says("", "hello") };

test("a node on the embedded database lists itself; a fleet that is watched ends with it, or when it is stopped", async () => {
  const operatorPort = await freePort();
  const node = await startService({ sluice: { store: "pglite", env: { SLUICE_OPERATOR_PORT: String(operatorPort) } } });
  const listed = () => node.json<Listed[]>("node", "list");
  const [first, ...others] = await listed();
  expect(others).toEqual([]);
  expect(first).toMatchObject({ state: "ready", problems: [], workers: 1, configuration_differs: false });
  expect(first!.name).toEndWith(`:${new URL(node.url).port}`);
  expect(first!.engines.map(({ states }) => states)).toEqual([[{ state: "closed", routes: 1 }]]);
  expect((await node.post("/v1/chat/completions", ask)).status).toBe(200);
  await until(async () => (await listed())[0]!.output_tokens_per_second > 0);
  const [busy] = await listed();
  expect(busy!.input_tokens_per_second).toBeGreaterThan(0);
  expect(busy!.first_part_p95_ms).toBeGreaterThan(0);
  const { stdout } = await node.cli("node", "list");
  expect(stdout).toContain(first!.name);
  expect(stdout).not.toContain("differ");

  const { token } = await node.json<{ token: string }>("operator", "create", "ann", "--role", "viewer");
  const server = { SLUICE_SERVER: `http://localhost:${operatorPort}`, SLUICE_OPERATOR_TOKEN: token };
  const watch = (environment: Record<string, string>) => {
    const env = { PATH: process.env.PATH ?? "", ...environment };
    const child = Bun.spawn([...program, "fleet", "--watch", "--json"], { env, stdout: "pipe" });
    return { child, lines: linesFrom(child.stdout) };
  };
  const [far, near] = [watch(server), watch({ SLUICE_DATA_DIR: node.dataDir })];
  await until(() => [far, near].every(({ lines }) => lines.length > 0));
  for (const { lines } of [far, near]) expect(JSON.parse(lines[0]!)).toMatchObject({ nodes: { ready: 1 } });
  near.child.kill("SIGINT");
  expect(await near.child.exited).toBe(0);
  const response = await fetch(`${server.SLUICE_SERVER}/management/v1/fleet?format=events`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const began_ms = performance.now();
  // A stopping node does not wait until the clients of its event streams leave.
  const [code, text] = await Promise.all([node.stop(), response.text()]);
  expect(code).toBe(0);
  expect(performance.now() - began_ms).toBeLessThan(10_000 * busyness());
  expect(text).toContain('event: error\ndata: {"error":{"message":"The node is about to stop.');
  // The other command keeps waiting for the node to come back.
  expect(far.child.exitCode).toBeNull();
  far.child.kill("SIGTERM");
  expect(await far.child.exited).toBe(0);
});

function linesFrom(stream: ReadableStream<Uint8Array>): string[] {
  const lines: string[] = [];
  void wholeLines(stream, (some) => {
    lines.push(...new TextDecoder().decode(some).trim().split("\n"));
  });
  return lines;
}

test("a node of several workers is one, also while one of them is replaced", async () => {
  const node = await startWorkers({ workers: "2" });
  const listed = () => node.json<Listed[]>("node", "list");
  await until(async () => (await listed())[0]?.workers === 2);
  const [before] = await listed();
  expect(before).toMatchObject({ state: "ready", workers: 2, workers_wanted: 2 });
  const lost = node.pids().get(1)!;
  process.kill(lost, "SIGKILL");
  await until(() => isGone(lost) && node.pids().size === 2);
  const nodes = await listed();
  expect(nodes.map(({ id, started_at }) => [id, started_at])).toEqual([[before!.id, before!.started_at]]);
  expect(await node.stop()).toBe(0);
});
