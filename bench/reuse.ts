// Measures the cost of each setting of `reuse` (which requests may share a connection to an engine), and how many
// responses to other requests clients get with it if an engine sends responses twice: `bun bench/reuse.ts [requests]
// [folder of an older checkout]`.
//
// 1. The CPU time of a process per request through the engine client (src/core/upstream/http1): 64 concurrent requests
//    of 1,000 organizations, to an engine in another process that responds after 5 to 15 ms. The settings of `reuse`
//    take turns in rounds, each in a process of its own; `before` is the client of the older checkout.
// 2. The wrong responses among 2,000 requests if the engine sends one of 50 responses a second time, 1 to 2 ms later.
//    After each stray byte, the client stops reusing connections for an hour, as it usually does, or for only some 20
//    ms.

import Table from "cli-table3";
import type { Client } from "../src/core/upstream/http1/client.ts";

const organizations = 1_000;
const inFlight = 64;
const rounds = 5;
const strayed_requests = 2_000;
const warm_requests = 2_000;
/** The share of the engine's responses that it sends a second time. */
const strayShare = 1 / 50;

interface Job {
  /** The folder of the checkout whose client is measured. */
  source: string;
  reuse: string;
  requests: number;
  engine: string;
  distrust_ms: number;
}

interface Outcome {
  cpu_us: number;
  connections: number;
  idle: number;
  ofOrganizations: number;
  ofCallers: number;
  failed: number;
}

/**
 * Runs an engine in a process of its own. It prints its port, and then, on a line each time, the number of connections
 * so far.
 */
function engine(share: number): void {
  let connections = 0;
  const server = Bun.listen<{ text: string; asked: number }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        connections += 1;
        socket.data = { text: "", asked: 0 };
      },
      data(socket, bytes) {
        const { data } = socket;
        data.text += bytes.toString("latin1");
        const request = /x-asked: (\S+)\r\n[\s\S]*?\r\n\r\n\{\}/.exec(data.text);
        if (!request) return;
        data.text = data.text.slice(request.index + request[0].length);
        const body = request[1] === "count/connections" ? String(connections) : request[1]!;
        const answer = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
        setTimeout(
          () => {
            socket.write(answer);
            if (Math.random() < share) setTimeout(() => socket.write(answer), 1 + Math.random());
          },
          5 + 10 * Math.random(),
        );
      },
      error() {},
    },
  });
  console.log(server.port);
}

async function measured({ source, reuse, requests, engine, distrust_ms }: Job): Promise<Outcome> {
  const { client } = await import(`${source}/src/upstream/http1/client.ts`);
  const { Cancellation } = await import(`${source}/src/time/cancellation.ts`);
  const one: Client = client(distrust_ms === 0 ? { distrust_ms, idle_ms: 20 } : {});
  const endpoint = one.at({}, () => ({ url: engine, headers: {}, tls: null, reuse: reuse as "any", upstream: "main" }));
  const signal = new Cancellation();
  const outcome: Outcome = { cpu_us: 0, connections: 0, idle: 0, ofOrganizations: 0, ofCallers: 0, failed: 0 };

  const ask = async (organization: string, asked: string, isFresh = false): Promise<string> => {
    const post = {
      headers: { "x-asked": asked },
      body: "{}",
      organization,
      isFresh,
      connect_ms: 5_000,
      connected() {},
    };
    const reply = await endpoint.post({ ...post, signal });
    const pieces: Uint8Array[] = [];
    for (let read = await reply.read(); read !== null; read = await reply.read()) pieces.push(...read);
    return Buffer.concat(pieces).toString();
  };
  const asMany = async (count: number): Promise<void> => {
    let begun = 0;
    const caller = async () => {
      for (let nth = begun++; nth < count; nth = begun++) {
        const organization = `org-${Math.floor(organizations * Math.random())}`;
        const text = await ask(organization, `${organization}/${nth}`).catch(() => null);
        if (text === null) outcome.failed += 1;
        else if (!text.startsWith(`${organization}/`)) outcome.ofOrganizations += 1;
        else if (text !== `${organization}/${nth}`) outcome.ofCallers += 1;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
  };
  const connections = async () => Number(await ask("", "count/connections", true));

  if (distrust_ms !== 0) await asMany(warm_requests);
  const before = { cpu: process.cpuUsage(), connections: await connections() };
  await asMany(requests);
  const { user, system } = process.cpuUsage(before.cpu);
  outcome.cpu_us = (user + system) / requests;
  outcome.connections = (await connections()) - before.connections;
  outcome.idle = one.idle();
  one.close();
  return outcome;
}

/** Starts this file as another process, and returns the first line of its output. */
async function inProcess(...words: string[]) {
  const child = Bun.spawn([process.execPath, import.meta.path, ...words], { stdout: "pipe", stderr: "inherit" });
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await lines.read();
    if (done) throw new Error(`${words[0]} ended`);
    text += value;
  }
  return { line: text.slice(0, text.indexOf("\n")), child };
}

async function job(share: number, one: Omit<Job, "engine">): Promise<Outcome> {
  const { line: port, child } = await inProcess("engine", String(share));
  const { line } = await inProcess("job", JSON.stringify({ ...one, engine: `http://127.0.0.1:${port}/` }));
  child.kill();
  await child.exited;
  return JSON.parse(line);
}

const median = (numbers: number[]) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
const table = (...head: string[]) => new Table({ head, style: { head: [], border: [] } });

async function main(): Promise<void> {
  const requests = Number(process.argv[2] ?? 4_000);
  const older = process.argv[3];
  const here = `${import.meta.dir}/..`;
  const clients = [
    ...(older ? [{ name: "before", source: older, reuse: "any" }] : []),
    ...["any", "organization", "none"].map((reuse) => ({ name: reuse, source: here, reuse })),
  ];
  const costs = new Map(clients.map(({ name }) => [name, [] as Outcome[]]));
  for (let round = 0; round < rounds; round++)
    for (const { name, ...of } of round % 2 ? clients.toReversed() : clients)
      costs.get(name)!.push(await job(0, { ...of, requests, distrust_ms: 3_600_000 }));
  const cost = table("reuse", "CPU, µs a request", "to the first", "new connections", "idle at the end");
  const [first] = costs.values();
  for (const [name, outcomes] of costs) {
    const cpu_us = median(outcomes.map((each) => each.cpu_us));
    // Only results of the same round are compared, because the machine's speed changes from round to round.
    const ratio = median(outcomes.map((each, round) => each.cpu_us / first![round]!.cpu_us));
    const { connections, idle } = outcomes[0]!;
    cost.push([name, cpu_us.toFixed(0), ratio.toFixed(3), connections, idle]);
  }
  console.log(cost.toString());

  const wrong = table("reuse", "distrust", "of another organization", "of another caller", "failed");
  for (const { name, ...of } of clients)
    for (const distrust_ms of name === "before" ? [3_600_000] : [3_600_000, 0]) {
      const { ofOrganizations, ofCallers, failed } = await job(strayShare, {
        ...of,
        requests: strayed_requests,
        distrust_ms,
      });
      const distrust = name === "before" ? "" : distrust_ms ? "an hour" : "20 ms";
      wrong.push([name, distrust, ofOrganizations, ofCallers, failed]);
    }
  console.log(wrong.toString());
}

if (process.argv[2] === "engine") engine(Number(process.argv[3]));
else if (process.argv[2] === "job") {
  console.log(JSON.stringify(await measured(JSON.parse(process.argv[3]!))));
  process.exit();
} else await main();
