// Measures how a noisy organization, with 32 times the load of any other, affects quiet ones at an engine that is at
// its limit: `bun bench/fairness.ts [seconds a run] [nodes]`. Several nodes get the requests in turn and share the
// limit (`scope: fleet`) on a Postgres and a Redis. Sluice and the engine communicate over real sockets. The engine
// works on 32 requests at a time, queues others in the order of their arrival, and takes 600 to 1,000 ms until the
// first part of its response and another 800 to 2,400 ms until the end. Each run prints the times to the first part for
// the quiet and the noisy organizations. The four runs are: the quiet ones alone; both, without a limit in Sluice; with
// a limit; and with a limit of which `reserved_percent` is reserved.

import { tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import { freshDatabase, redisUrl } from "../test/harness/services.ts";
import { type Sluice, startSluice } from "../test/harness/sluice.ts";

const slots = 32;
const quiet_count = 4;
const quiet_per_s = 0.5;
const noisy_per_s = 32 * quiet_per_s;
/** The number of clients of the noisy organization. Each sends its next request when it has its response. */
const noisy_clients = 4 * slots;
const bounds_ms = [700, 800, 900, 1_000, 1_100, 1_200, 1_300, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000];

const encoder = new TextEncoder();
const frame = (data: object | string) =>
  encoder.encode(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
const said = (content: string) => frame({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const ended = [
  frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  frame({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } }),
  frame("[DONE]"),
];

function startEngine() {
  let running = 0;
  let most = 0;
  const line = new Set<() => void>();

  /** Waits for a free slot, and resolves with a function that frees it; null if the caller has disconnected before. */
  async function entered(signal: AbortSignal): Promise<(() => void) | null> {
    if (running >= slots) {
      const { promise, resolve } = Promise.withResolvers<void>();
      line.add(resolve);
      signal.addEventListener("abort", () => line.delete(resolve) && resolve());
      most = Math.max(most, running + line.size);
      await promise;
      if (signal.aborted) return null;
    } else running += 1;
    most = Math.max(most, running + line.size);
    return () => {
      const [next] = line;
      if (!next) running -= 1;
      else if (line.delete(next)) next();
    };
  }

  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 120 },
    async fetch(request) {
      await request.text();
      const leave = await entered(request.signal);
      if (!leave) return new Response(null, { status: 499 });
      await Bun.sleep(600 + 400 * Math.random());
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          try {
            controller.enqueue(said("all "));
            await Bun.sleep(800 + 1_600 * Math.random());
            for (const part of [said("is well"), ...ended]) controller.enqueue(part);
            controller.close();
          } catch {
            // If the caller has disconnected, its slot must be freed, or the engine would lose a slot at each
            // disconnect.
          } finally {
            leave();
          }
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const mostSince = () => {
    const seen = most;
    most = 0;
    return seen;
  };
  return { url: `http://127.0.0.1:${server.port}/v1`, mostSince, stop: () => server.stop(true) };
}

/** The milliseconds until the first part arrived, or the reason why none did. */
async function firstPart(sluice: Sluice, key: string, model: string): Promise<number | string> {
  const asked_ms = performance.now();
  const response = await fetch(`${sluice.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model,
      stream: true,
      max_completion_tokens: 500,
      messages: [{ role: "user", content: "hi" }],
    }),
  });
  if (response.status !== 200) return `${response.status} ${/"code": ?"(\w+)"/.exec(await response.text())?.[1]}`;
  let first_ms: number | null = null;
  let text = "";
  for await (const chunk of response.body!) {
    text += new TextDecoder().decode(chunk);
    if (first_ms === null && text.includes("all ")) first_ms = performance.now() - asked_ms;
  }
  return first_ms !== null && text.includes("[DONE]") ? first_ms : "broken off";
}

interface Load {
  firsts_ms: number[];
  /** The number of failures by reason. */
  failed: Map<string, number>;
}

/** Sends requests at random (Poisson) intervals with the given mean rate, for the given number of seconds. */
async function load(
  ask: () => Promise<number | string>,
  per_s: number,
  length_s: number,
  clients_max: number,
): Promise<Load> {
  const told: Load = { firsts_ms: [], failed: new Map() };
  let open = 0;
  const pending: Promise<void>[] = [];
  const begun_ms = performance.now();
  for (let due_ms = 0; due_ms < length_s * 1000; due_ms += (-Math.log(1 - Math.random()) * 1000) / per_s) {
    await Bun.sleep(Math.max(0, begun_ms + due_ms - performance.now()));
    if (open >= clients_max) continue;
    open += 1;
    pending.push(
      ask().then((first) => {
        open -= 1;
        if (typeof first === "number") told.firsts_ms.push(first);
        else told.failed.set(first, (told.failed.get(first) ?? 0) + 1);
      }),
    );
  }
  await Promise.all(pending);
  return told;
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN;
}

async function main(): Promise<void> {
  const length_s = Number(process.argv[2] ?? 60);
  const engine = startEngine();
  const model = (id: string) => `  - id: acme/${id}
    created: 1790000000
    context_window: 131072
    prices: { input: 0.001, output: 0.001 }
    routes: [{ upstream: ${id}, model: ${id} }]`;
  const nodes_count = Number(process.argv[3] ?? 1);
  const scope = nodes_count > 1 ? "fleet" : "process";
  const limit = `concurrent_max: ${slots}, scope: ${scope}`;
  const config = [
    "upstreams:",
    `  unlimited: { url: "${engine.url}" }`,
    `  limited: { url: "${engine.url}", ${limit}, queue: { wait_ms_max: 120000 } }`,
    `  reserved: { url: "${engine.url}", ${limit}, queue: { wait_ms_max: 120000, reserved_percent: 20 } }`,
    "metering: { currency: USD }",
    "models:",
    ...["unlimited", "limited", "reserved"].map(model),
    "",
  ].join("\n");
  const database = nodes_count > 1 ? await freshDatabase() : null;
  const env = database && { DATABASE_URL: database.url, REDIS_URL: await redisUrl() };
  const nodes: Sluice[] = [];
  while (nodes.length < nodes_count)
    nodes.push(
      await startSluice({
        config,
        store: "pglite",
        ...(env && { env }),
        // The other nodes use the first node's data folder, and so find the organizations that it creates.
        ...(nodes.length > 0 && { dataDir: join(tmpdir(), `sluice-fairness-${nodes.length}`) }),
      }),
    );
  const [sluice] = nodes as [Sluice];
  let nodeTurn = 0;
  const nextNode = () => nodes[nodeTurn++ % nodes_count]!;
  const keyOf = async (slug: string) => {
    await sluice.json("org", "create", slug, "--plan", "unlimited");
    return (await sluice.json<{ key: string }>("key", "create", "--org", slug, "--name", slug)).key;
  };
  const noisy = await keyOf("noisy");
  const quiet: string[] = [];
  while (quiet.length < quiet_count) quiet.push(await keyOf(`quiet-${quiet.length}`));
  let turn = 0;
  const nextQuiet = () => quiet[turn++ % quiet_count]!;
  const runs = [
    { name: "alone", model: "acme/unlimited", isNoisy: false },
    { name: "no limit in Sluice", model: "acme/unlimited", isNoisy: true },
    { name: `concurrent_max: ${slots}`, model: "acme/limited", isNoisy: true },
    { name: "and reserved_percent: 20", model: "acme/reserved", isNoisy: true },
  ];
  const table = new Table({
    head: ["run", "who", "answers a second", "p50 ms", "p99 ms", "× alone", "failed", "most at the engine"],
    style: { head: [], border: [] },
  });
  const histogram = new Table({
    head: ["run", "who", ...bounds_ms.map((bound) => `≤ ${bound}`), "more"],
    style: { head: [], border: [], compact: true },
  });
  let alone_ms = Number.NaN;
  // These requests warm the nodes up, so that everything that is created only once exists before the measurement.
  await Promise.all(Array.from({ length: slots }, () => firstPart(nextNode(), nextQuiet(), "acme/unlimited")));
  for (const { name, model, isNoisy } of runs) {
    const both = [
      {
        who: "quiet",
        loaded: load(() => firstPart(nextNode(), nextQuiet(), model), quiet_count * quiet_per_s, length_s, 1_000),
      },
      ...(isNoisy
        ? [
            {
              who: "noisy",
              loaded: load(() => firstPart(nextNode(), noisy, model), noisy_per_s, length_s, noisy_clients),
            },
          ]
        : []),
    ];
    for (const { who, loaded } of both) {
      const { firsts_ms, failed } = await loaded;
      const p99_ms = quantile(firsts_ms, 0.99);
      if (!isNoisy) alone_ms = p99_ms;
      table.push([
        ...[
          name,
          who,
          (firsts_ms.length / length_s).toFixed(1),
          quantile(firsts_ms, 0.5).toFixed(0),
          p99_ms.toFixed(0),
        ],
        ...[
          who === "quiet" ? (p99_ms / alone_ms).toFixed(2) : "",
          [...failed].map((one) => one.join(" × ")).join(", "),
          who === "quiet" ? "" : engine.mostSince(),
        ],
      ]);
      const counts = [0, ...bounds_ms, Number.POSITIVE_INFINITY].slice(1);
      const from = [0, ...bounds_ms];
      histogram.push([
        ...[name, who],
        ...counts.map((to, index) => firsts_ms.filter((ms) => ms > from[index]! && ms <= to).length || ""),
      ]);
    }
  }
  console.log(`${table}\n\nUntil the first part, in milliseconds: how many answers\n${histogram}`);
  for (const node of nodes) await node.stop();
  await database?.drop();
  engine.stop();
}

await main();
