/** The ports that workers share: the ports for clients, with and without TLS, and the operator's port. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { authority, type Identity, written } from "../../harness/certificates.ts";
import { freePort } from "../../harness/daemon.ts";
import { model, says, words } from "../../harness/engine.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { until } from "../../harness/until.ts";
import { own, said, startWorkers, type WorkersNode, workerOf } from "./node.ts";

setDefaultTimeout(120_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-workers-tls-"));
const ours = authority();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const serial = ({ certificate }: Identity) => new X509Certificate(certificate).serialNumber;

/** The certificate that a new connection gets; null if the listener closed the connection because it was closing. */
function seen(url: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const port = Number(new URL(url).port);
  const socket = connect({ host: "127.0.0.1", port, ca: ours.certificate, servername: "localhost" });
  socket
    .once("error", () => resolve(null))
    .once("secureConnect", () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw).serialNumber);
      socket.destroy();
    });
  return promise;
}

test("TLS: every worker serves it, and every worker takes a new certificate", async () => {
  const [first, second] = [ours.issue(["localhost"]), ours.issue(["localhost"])];
  const { certificate, key } = written(folder, "shared", first);
  const env = { SLUICE_TLS_CERTIFICATE_FILE: certificate, SLUICE_TLS_KEY_FILE: key };
  const node = await startWorkers({ env, ca: ours.certificate });
  expect(node.url).toStartWith("https://localhost:");
  const answers = await Promise.all(Array.from({ length: 30 }, () => node.fetch("/v1/models", own)));
  const workers = await Promise.all(answers.map((one) => workerOf(node, one.headers.get("x-service-request-id")!)));
  expect(new Set(workers)).toEqual(new Set([1, 2]));
  written(folder, "shared", second);
  node.signal("SIGHUP");
  await until(() => said(node, "certificate_renewed") === 2, 20_000, "both renewals");
  const shown = await Promise.all(Array.from({ length: 30 }, () => seen(node.url)));
  expect(new Set(shown)).toEqual(new Set([serial(second)]));
  expect(await node.stop()).toBe(0);
});

/** A client with one connection, which it reopens when the server closes it. */
function client(node: WorkersNode, isStreamed: boolean) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify({ model, messages: says("ttft=30", words(2)), max_tokens: 8, stream: isStreamed });
  const headers = { authorization: `Bearer ${node.key}`, "content-type": "application/json" };
  const ask = () => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const asked = request(`${node.url}/v1/chat/completions`, { agent, method: "POST", headers }, (answer) => {
      answer.resume().on("end", () => resolve(String(answer.headers["x-service-request-id"])));
    });
    asked.on("error", reject).end(body);
    return promise;
  };
  return { ask, worker: async () => workerOf(node, await ask()), end: () => agent.destroy() };
}

describe("a node of two workers", () => {
  let node: WorkersNode;
  let operator: string;
  beforeAll(async () => {
    const port = await freePort();
    operator = `http://127.0.0.1:${port}`;
    node = await startWorkers({ env: { SLUICE_OPERATOR_PORT: String(port) } });
  });
  afterAll(() => node?.stop());
  const ask = (path: string, init: RequestInit = {}) => fetch(operator + path, { ...own, ...init });

  test("the operator's port: whichever worker answers, it speaks for the node", async () => {
    for (let look = 0; look < 6; look++) {
      const verbose = (await (await ask("/readyz?verbose")).json()) as {
        checks: Record<string, string>;
        routes: { worker: number; upstream: string; state: string }[];
      };
      expect(verbose.checks).toMatchObject({ workers: "ok", workers_serving: "ok" });
      expect(new Set(verbose.routes.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
      expect(await (await ask("/metrics")).text()).toContain('node_workers{state="serving"} 2\n');
      expect((await ask("/livez")).status).toBe(200);
    }
    const { stdout } = await node.cli("upstream", "list");
    expect(stdout).toMatch(/^WORKER +UPSTREAM/);
    expect(stdout).toMatch(/^2 +canary-upstream-name +acme\/writer-1 +closed/m);
    const { token } = await node.json<{ token: string }>("operator", "create", "ops", "--role", "admin");
    const managed = await ask("/management/v1/organizations", { headers: { authorization: `Bearer ${token}` } });
    expect(managed.status).toBe(200);
    // A key that is revoked through one worker is revoked in all.
    const { id, key } = await node.json<{ id: string; key: string }>(
      "key",
      "create",
      "--org",
      "test",
      "--name",
      "gone",
    );
    const tried = () => Promise.all(Array.from({ length: 12 }, () => node.fetch("/v1/models", { ...own, key })));
    expect((await tried()).map(({ status }) => status)).toEqual(Array(12).fill(200));
    await node.json("key", "revoke", id);
    await until(async () => (await tried()).every(({ status }) => status === 401), 3000, "the revocation everywhere");
  });

  test("connections that live long, and lie unevenly, come to be spread over the workers: 40 to 60 or better", async () => {
    const all = Array.from({ length: 96 }, (_, number) => client(node, number % 2 === 0));
    const workers = await Promise.all(all.map((one) => one.worker()));
    // An uneven distribution, as the kernel's hash may produce it: nearly all connections go to one worker.
    const crowd = all.filter((_, index) => workers[index] === 1).slice(0, 28);
    const clients = [...crowd, ...all.filter((_, index) => workers[index] === 2).slice(0, 4)];
    expect(clients.length).toBeGreaterThan(24);
    let isOver = false;
    let served: number[] = [];
    const loops = clients.map(async ({ ask, end }) => {
      while (!isOver) await ask();
      end();
    });
    const even = () => {
      const lines = linesOf(node, "request");
      served = lines.slice(-200).map(({ worker }) => worker as number);
      const first = served.filter((worker) => worker === 1).length / served.length;
      return lines.length > 400 && first >= 0.4 && first <= 0.6;
    };
    await until(even, 30_000, "an even split");
    isOver = true;
    await Promise.all(loops);
    for (const { end } of all) end();
  });

  // This test is the last one on this node, because it kills a worker and stops the node.
  test("a worker that hangs makes the node not ready, one that is missing does not, and the node says which", async () => {
    const readiness = async () => {
      // A connection to a worker that hangs gets no response; the next connection may go to another worker.
      const signal = AbortSignal.timeout(1000);
      const answer = await ask("/readyz", { signal }).catch(() => null);
      const body = (await answer?.json()) as { checks: Record<string, string> } | undefined;
      return { status: answer?.status ?? 0, checks: body?.checks ?? {} };
    };
    const second = node.pids().get(2)!;
    process.kill(second, "SIGSTOP");
    await until(async () => (await readiness()).status === 503, 20_000, "the node not to be ready");
    let told = await readiness();
    while (told.status === 0) told = await readiness();
    expect(told.checks.workers).toMatch(/^worker 2: has said nothing for \d+ s$/);
    process.kill(second, "SIGCONT");
    // The node must be ready at every worker.
    const isReady = async () => {
      const told = await Promise.all(Array.from({ length: 12 }, readiness));
      return told.every(({ status }) => status === 200);
    };
    await until(isReady, 10_000, "the node to be ready again");
    // A worker that is gone gets no connections, so the node is ready through the other workers.
    process.kill(second, "SIGKILL");
    await linesThen(node, "worker_lost", 1);
    const statuses = new Set<number>();
    const isReplaced = async () => {
      statuses.add((await readiness()).status);
      return said(node, "worker_serving") === 3;
    };
    await until(isReplaced, 20_000, "the worker in its place");
    expect(statuses).toEqual(new Set([200]));
    expect(await node.stop()).toBe(0);
  });
});
