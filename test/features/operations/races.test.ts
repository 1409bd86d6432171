/**
 * Hundreds of concurrent embedding requests against a limit that fits five: five succeed, and all others are refused
 * with the reason.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { times } from "../../harness/depth.ts";
import { inMoney } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { newMember } from "../../harness/organizations.ts";
import { rawClient } from "../../harness/raw-client.ts";
import { redisUrl } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { modelEntry } from "./model-entry.ts";

setDefaultTimeout(240_000);

const [requests, room] = [times(300, 1_000), 5];
const patience_ms = 100_000;
/** Token IDs are counted exactly: each request holds, and is charged, 10 tokens at 100 nanos. */
const input = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const request_nanos = 1000;
const model = "acme/embed-1";

/**
 * The engine responds to no request before this promise resolves, so that no request ends and frees a part of the
 * limit.
 */
let gate = Promise.withResolvers<void>();
let asked = 0;
const engine = Bun.serve({
  port: 0,
  idleTimeout: 255,
  async fetch() {
    asked += 1;
    await gate.promise;
    const usage = { prompt_tokens: input.length, total_tokens: input.length };
    return Response.json({ object: "list", data: [{ object: "embedding", index: 0, embedding: [0.6, -0.8] }], usage });
  },
});
afterAll(() => engine.stop(true));

const config = `
upstreams: { gated: { url: "http://127.0.0.1:${engine.port}/v1" } }
metering: { currency: USD }
models: ${modelEntry(model, "embedding", "gated")}
plans:
  few: { concurrent_requests: ${room} }
  small: ${inMoney(`{ session: ${room * request_nanos} }`)}
`;

interface Answered {
  status: number;
  code: string | undefined;
  message: string;
}

/** Opens a connection for each request, and then sends all requests at the same time. */
async function race(nodes: readonly Sluice[], key: string): Promise<Answered[]> {
  [gate, asked] = [Promise.withResolvers(), 0];
  const body = JSON.stringify({ model, input });
  const head = `POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`;
  const clients = await Promise.all(
    Array.from({ length: requests }, (_, at) => rawClient(nodes[at % nodes.length]!.url)),
  );
  let answers = 0;
  const told = clients.map(async (client) => {
    await client.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    const answer = await client.read(undefined, patience_ms * busyness());
    answers += 1;
    client.leave();
    return answer;
  });
  const isDecided = () => answers + asked >= requests;
  const deciding = until(isDecided, patience_ms, "each request to be refused, or to reach the engine");
  await deciding.finally(() => gate.resolve());
  return (await Promise.all(told)).map(answered);
}

function answered(text: string): Answered {
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  const { error } = JSON.parse(text.slice(text.indexOf("\r\n\r\n"))) as { error?: { code: string; message: string } };
  return { status, code: error?.code, message: error?.message ?? "" };
}

describe.each([
  ["three nodes on Postgres", 3],
  ["one node on the embedded database", 1],
] as const)("on %s", (_, count) => {
  const nodes: Sluice[] = [];
  let database: Awaited<ReturnType<typeof migratedDatabase>> | null = null;
  beforeAll(async () => {
    database = count > 1 ? await migratedDatabase() : null;
    const env: Record<string, string> = database ? { DATABASE_URL: database.url, REDIS_URL: await redisUrl() } : {};
    for (let at = 0; at < count; at++) {
      // The first node creates the organization and its key.
      const other = at > 0 ? { dataDir: "unused" } : {};
      nodes.push(await startSluice({ store: "pglite", config, env, ...other }));
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    await database?.drop();
  });

  const keyOn = async (plan: string) => (await newMember(nodes[0]!, plan)).key;
  const next = (key: string) => nodes.at(-1)!.post("/v1/embeddings", { model, input }, { key });
  const raced = async (key: string, code: string, words: string) => {
    const answers = await race(nodes, key);
    const refused = answers.filter(({ status }) => status !== 200);
    expect([answers.length - refused.length, asked]).toEqual([room, room]);
    expect([...new Set(refused.map((one) => `${one.status} ${one.code}`))]).toEqual([`429 ${code}`]);
    for (const { message } of refused) expect(message).toContain(words);
  };

  test("a plan's concurrency", async () => {
    const key = await keyOn("few");
    await raced(key, "concurrency_limit_exceeded", "5");
    // The five requests have ended, and no longer count against the limit.
    await until(async () => (await next(key)).status === 200);
  });

  test("a window's nanos", async () => {
    const key = await keyOn("small");
    await raced(key, "usage_reserved", "$0.000005");
    // Once the five requests are settled, the window is used up to the last nano.
    const shareUsed = async () => {
      const shown = await (await nodes[0]!.fetch("/v1/service/usage", { key })).json();
      return (shown as { session: { usage_percent: number } }).session.usage_percent;
    };
    await until(async () => (await shareUsed()) === 100, 10_000, "the window to be used up");
    const { error } = (await (await next(key)).json()) as { error: { code: string } };
    expect(error.code).toBe("usage_limit_reached");
  });
});
