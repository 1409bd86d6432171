// Measures the cost of authentication, on a whole node with the embedded database: `bun bench/identity-tokens.ts
// [requests] [configured]`; with `configured`, only part 1 runs.
//
// 1. A request with a key, on a node with `identity` and on a node without. A second node without `identity` shows the
//    noise: two processes of the same program differ, too.
// 2. A request with an issuer's token and one with a key, on one node.
// 3. The same as part 2, while another process sends forged tokens from 40 addresses over 400 connections.
//
// In each part, the compared cases alternate, request by request. CPU time is the node's own, user and system.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { model, type Service, startService } from "../test/harness/engine.ts";
import { startIssuer } from "../test/harness/issuer.ts";
import { secretKey } from "../test/harness/people-node.ts";
import { until } from "../test/harness/until.ts";

const requests = Number(process.argv[2] ?? 400);
const connections = 400;
const settle_ms = 3000;
const operations = ["models", "chat"] as const;
const bodies = { models: null, chat: JSON.stringify({ model, messages: [{ role: "user", content: "Hi." }] }) };
const paths = { models: "/v1/models", chat: "/v1/chat/completions" };

interface Caller {
  service: Service;
  credential: string;
}

/** Sends one request, and returns how long its response took, in milliseconds. */
async function ask({ service, credential }: Caller, operation: (typeof operations)[number]): Promise<number> {
  const body = bodies[operation];
  const headers = { authorization: `Bearer ${credential}`, "x-forwarded-for": "203.0.113.1" };
  const began = performance.now();
  const response = await fetch(service.url + paths[operation], {
    headers: body === null ? headers : { ...headers, "content-type": "application/json" },
    ...(body === null ? {} : { method: "POST", body }),
  });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`${operation}: ${response.status}`);
  return performance.now() - began;
}

const p50 = (times: number[]) => times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)]!;

/** The CPU time that the process has used, in milliseconds. */
function cpu_ms({ pid }: Service): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * Sends requests as each caller in turn, in a changing order. Prints each caller's median, compared with the first
 * one's.
 */
async function inTurns(title: string, callers: Record<string, Caller>, count: number): Promise<Record<string, number>> {
  const medians: Record<string, number> = {};
  for (const operation of operations) {
    const names = Object.keys(callers);
    const times = new Map(names.map((name) => [name, [] as number[]]));
    for (let turn = 0; turn < count; turn++)
      for (const at of names.keys()) {
        const name = names[(turn + at) % names.length]!;
        times.get(name)!.push(await ask(callers[name]!, operation));
      }
    const [first = 1] = names.map((name) => p50(times.get(name)!));
    for (const name of names) {
      const median = p50(times.get(name)!);
      medians[`${operation} ${name}`] = median;
      console.log(`${title}\t${operation}\t${name}\tp50 ${median.toFixed(3)} ms\tx ${(median / first).toFixed(3)}`);
    }
  }
  return medians;
}

/** Measures the CPU time of each caller's node per request, in alternating blocks of requests. */
async function cpuInTurns(callers: Record<string, Caller>, count: number): Promise<void> {
  const blocks = 10;
  for (const operation of operations) {
    const used = Object.fromEntries(Object.keys(callers).map((name) => [name, 0]));
    for (let block = 0; block < blocks; block++)
      for (const [name, caller] of block % 2 ? Object.entries(callers) : Object.entries(callers).reverse()) {
        const before = cpu_ms(caller.service);
        for (let at = 0; at < count / blocks; at++) await ask(caller, operation);
        used[name]! += cpu_ms(caller.service) - before;
      }
    const [first = 1] = Object.values(used);
    for (const [name, ms] of Object.entries(used))
      console.log(
        `CPU\t${operation}\t${name}\t${((1000 * ms) / count).toFixed(0)} us a request\tx ${(ms / first).toFixed(3)}`,
      );
  }
}

async function startNode(more = ""): Promise<Caller> {
  const env = { SLUICE_SECRET_KEY: secretKey, SLUICE_TRUSTED_PROXIES: "127.0.0.1,::1" };
  const service = await startService({ more, sluice: { env } });
  await service.json("org", "create", "acme", "--plan", "unlimited");
  const { key } = await service.json<{ key: string }>("key", "create", "--org", "acme", "--name", "k");
  return { service, credential: key };
}

async function flooded(url: string, issuer: string, kid: string) {
  const script = join(import.meta.dir, "../test/attacks/token-flood.ts");
  const words = [process.execPath, script, url, String(connections), issuer, kid];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "inherit" });
  let last = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) last = new TextDecoder().decode(chunk).trim().split("\n").at(-1)!;
  })();
  await until(() => last !== "", 60_000, "the flood to begin");
  return {
    answers: () => last,
    async end() {
      child.kill("SIGKILL");
      await reading;
    },
  };
}

async function main(): Promise<void> {
  const issuer = await startIssuer();
  const identity = `
identity:
  service_url: http://127.0.0.1:1
  issuers: [{ issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }]
  rules: [{ claim: groups, has: research, organization: acme, role: member }]
`;
  const load = () => readFileSync("/proc/loadavg", "utf8").split(" ", 2).join(" ");
  const nodes = { without: await startNode(), "without, again": await startNode(), with: await startNode(identity) };
  await inTurns("warm-up", nodes, 200);
  console.log("load", load());
  await inTurns("identity", nodes, requests);
  await cpuInTurns(nodes, requests * 2);
  if (process.argv[3] === "configured") {
    for (const { service } of Object.values(nodes)) await service.stop();
    return issuer[Symbol.asyncDispose]();
  }
  for (const { service } of [nodes.without, nodes["without, again"]]) await service.stop();

  const { service, credential } = nodes.with;
  const token = await issuer.sign({ sub: "ann", aud: "sluice-api", groups: ["research"] });
  const callers = { key: { service, credential }, token: { service, credential: token } };
  await inTurns("warm-up", callers, 50);
  const quiet = await inTurns("quiet", callers, requests);
  const flood = await flooded(service.url, issuer.issuer, issuer.keys[0]!.kid);
  await inTurns("flood begins", callers, Math.ceil(requests / 4));
  await Bun.sleep(settle_ms);
  const before = cpu_ms(service);
  const began = performance.now();
  const under = await inTurns("flood goes on", callers, requests);
  const share = (cpu_ms(service) - before) / (performance.now() - began);
  console.log("answers to the flood", flood.answers(), `node ${(100 * share).toFixed(0)} % of a core`, "load", load());
  await flood.end();
  for (const [name, median] of Object.entries(under))
    console.log(`flood beside quiet\t${name}\tx ${(median / quiet[name]!).toFixed(2)}`);
  await inTurns("quiet again", callers, requests);
  await service.stop();
  await issuer[Symbol.asyncDispose]();
}

await main();
