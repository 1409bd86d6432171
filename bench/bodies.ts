// What large bodies and long answers cost: `bun bench/bodies.ts [seconds] [connections] [streams] [word]`. One node on Postgres
// and Redis with every limit on, an engine, and a process that passes requests on and does nothing else; four kinds of request
// take turns, round by round, in one run: a small one, an agent's body of 66 KB with a small cap (the engine is asked for its
// answer whole), the same without a cap (the engine is asked for a stream, and nobody streams), and a small one that streams.
// Streamed answers have 100 tokens, 10 ms apart. CPU is the process's own. `word` chooses kinds by a word of their names. With
// TEST_SLUICE_BEFORE, an older binary takes turns with this one, on a database of its own.

import Table from "cli-table3";
import { agentBody, smallBody, smallStream } from "./agent-body.ts";
import { cpu_us, post, programs, startNode, startPasser } from "./node.ts";
import { closely } from "./steady.ts";

const seconds = Number(process.argv[2] ?? 5);
const connections = Number(process.argv[3] ?? 32);
const streams = Number(process.argv[4] ?? 128);
const word_asked = process.argv[5] ?? "";
const rounds = 4;
const answer_tokens = 100;
const token_ms = 10;

const usage = { prompt_tokens: 16_000, completion_tokens: answer_tokens, total_tokens: 16_000 + answer_tokens };
const whole = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: " word".repeat(16) }, finish_reason: "stop" }],
  usage: { prompt_tokens: 16_000, completion_tokens: 16, total_tokens: 16_016 },
});

/** Chunks as vLLM writes them. */
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-0",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  })}\n\n`;
const word = new TextEncoder().encode(chunk({ content: " word" }));
const last = `${chunk({}, "stop")}data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;

function streamed(): Response {
  let left = answer_tokens;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await Bun.sleep(token_ms);
      if (left-- > 0) return controller.enqueue(word);
      controller.enqueue(new TextEncoder().encode(last));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

interface Kind {
  body: string;
  /** What the engine is asked in the end, for the process that only passes it on. */
  passedOn: string;
  connections: number;
}

interface Measured {
  latencies: number[];
  cpu_us: number;
}

async function main(): Promise<void> {
  const engine = Bun.serve({
    port: 0,
    fetch: async (request) => {
      if ((await request.text()).includes('"stream":true')) return streamed();
      return new Response(whole, { headers: { "content-type": "application/json" } });
    },
  });
  const passing = await startPasser(`http://127.0.0.1:${engine.port}`);
  const words = programs();
  const now = await startNode(words.now, engine.port!);
  const before = words.before ? await startNode(words.before, engine.port!) : null;
  const cap = { max_tokens: 256 };
  const kinds: Record<string, Kind> = {
    small: { body: smallBody, passedOn: smallBody, connections },
    "66 KB, asked whole": { body: agentBody(cap), passedOn: agentBody(cap), connections },
    "66 KB, asked streamed": { body: agentBody({}), passedOn: agentBody({ stream: true }), connections: streams },
    streamed: { body: smallStream, passedOn: smallStream, connections: streams },
  };
  const chosen = Object.entries(kinds).filter(([kind]) => kind.includes(word_asked));
  const targets = chosen.flatMap(([kind, { body, passedOn, connections }]) =>
    [
      { name: "passed on", pid: passing.pid, ask: () => post(`${passing.url}/v1/chat/completions`, "", passedOn) },
      ...(before ? [{ name: "before", pid: before.pid, ask: () => asked(before, body) }] : []),
      { name: "now", pid: now.pid, ask: () => asked(now, body) },
    ].map((target) => ({ ...target, kind, connections, measured: { latencies: [], cpu_us: 0 } as Measured })),
  );
  for (let round = -1; round < rounds; round++) {
    for (const { pid, ask, connections, measured } of targets) {
      const warming = round < 0;
      const begun_us = cpu_us(pid);
      const latencies = warming ? [] : measured.latencies;
      await closely(ask, { length_s: warming ? Math.max(3, seconds) : seconds, connections, latencies });
      if (!warming) measured.cpu_us += cpu_us(pid) - begun_us;
    }
  }
  report(targets);
  passing.kill();
  await now.stop();
  await before?.stop();
  await engine.stop(true);
}

type Node = Awaited<ReturnType<typeof startNode>>;

function asked(node: Node, body: string): Promise<Response> {
  return post(`${node.url}/v1/chat/completions`, node.keys.on!, body);
}

function report(targets: { name: string; kind: string; measured: Measured }[]): void {
  const table = new Table({
    head: ["", "", "requests", "CPU, µs a request", "× passed on", "p50 ms", "p99 ms"],
    style: { head: [], border: [] },
  });
  const cost = ({ latencies, cpu_us }: Measured) => cpu_us / latencies.length;
  let least = 1;
  for (const { name, kind, measured } of targets) {
    if (name === "passed on") least = cost(measured);
    const sorted = measured.latencies.toSorted((one, other) => one - other);
    const at = (share: number) => sorted[Math.floor(sorted.length * share)]!.toFixed(1);
    const [us, ratio] = [cost(measured).toFixed(0), (cost(measured) / least).toFixed(2)];
    table.push([kind, name, sorted.length, us, ratio, at(0.5), at(0.99)]);
  }
  console.log(table.toString());
}

await main();
