/**
 * Limits a minute of three nodes on one Postgres, whose Redis goes away and comes back: each node keeps its share, by the
 * number of nodes that the fleet's reports know, and operators are told by how much the limits may be missed.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startSimulator } from "../../src/features/simulator/server.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { newMember } from "../harness/organizations.ts";
import { startRedis } from "../harness/services.ts";
import { type Sluice, type SluiceOptions, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";
import { bodyOf } from "./callers.ts";
import { configOf } from "./config.ts";

setDefaultTimeout(120_000);

let database: Awaited<ReturnType<typeof migratedDatabase>>;
let redis: Awaited<ReturnType<typeof startRedis>>;
let engine: Awaited<ReturnType<typeof startSimulator>>;
let nodes: Sluice[];

function startNode(more: SluiceOptions = { dataDir: "unused" }): Promise<Sluice> {
  return startSluice({
    ...{ store: "pglite", ...more },
    config: configOf(
      { engine: { url: engine.url } },
      { writer: ["engine"] },
      { plans: { nine: { requests_per_minute: 9 } }, prices: { input: 0.001, output: 0.001 } },
    ),
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url },
  });
}

beforeAll(async () => {
  database = await migratedDatabase();
  redis = await startRedis();
  engine = await startSimulator();
  // The first node makes the organization and its key.
  nodes = [await startNode({})];
  nodes.push(...(await Promise.all([startNode(), startNode()])));
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await redis.stop();
  await engine.stop();
  await database.drop();
});

const shares = (count: number) =>
  `each of the ${count} processes of the fleet counts its share of the limits a minute by itself, so they may be missed by a factor of up to ${count} either way`;

const redisSays = async (node: Sluice) => {
  const response = await node.fetch("/readyz?verbose", { key: null });
  expect(response.status).toBe(200);
  return ((await response.json()) as { checks: Record<string, string> }).checks.redis;
};

const said = (words: string) =>
  until(
    async () => (await Promise.all(nodes.map(redisSays))).every((one) => one === words),
    20_000,
    `every node to say: ${words}`,
  );

/**
 * How many requests of one new organization each node lets through, and what the headers of each node's first answer
 * say is left.
 */
async function letThrough() {
  const { key } = await newMember(nodes[0]!, "nine");
  const admitted: number[] = [];
  const left: (string | null)[] = [];
  for (const node of nodes) {
    let count = 0;
    for (let turn = 0; turn < 12; turn++) {
      const response = await node.post("/v1/chat/completions", bodyOf("chat", "acme/writer", false), { key });
      await response.text();
      expect([200, 429]).toContain(response.status);
      expect(response.headers.get("x-ratelimit-limit-requests")).toBe("9");
      if (turn === 0) left.push(response.headers.get("x-ratelimit-remaining-requests"));
      if (response.status === 200) count += 1;
    }
    admitted.push(count);
  }
  return { admitted, left };
}

test("while Redis counts, three nodes let a limit through once", async () => {
  await said("ok");
  expect(await letThrough()).toEqual({ admitted: [9, 0, 0], left: ["8", "0", "0"] });
});

test("while it is away, each has a third, and readiness and doctor say so", async () => {
  await redis.stop();
  await said(`warning: Redis does not answer: ${shares(3)}`);
  expect(await letThrough()).toEqual({ admitted: [3, 3, 3], left: ["2", "2", "2"] });
  const doctor = await nodes[0]!.cli("doctor", "--json");
  const findings = JSON.parse(doctor.stdout) as { check: string; status: string; says: string }[];
  expect(findings.find(({ check }) => check === "redis")).toMatchObject({
    status: "problem",
    says: expect.stringContaining(shares(3)),
  });
});

test("a node that leaves makes the shares of the others larger, and one that joins smaller", async () => {
  await nodes.pop()!.stop();
  await said(`warning: Redis does not answer: ${shares(2)}`);
  expect((await letThrough()).admitted).toEqual([5, 5]);
  nodes.push(await startNode());
  await said(`warning: Redis does not answer: ${shares(3)}`);
  expect((await letThrough()).admitted).toEqual([3, 3, 3]);
});

test("when it is back, they let a limit through once again", async () => {
  redis = await startRedis(Number(new URL(redis.url).port));
  await said("ok");
  const { key } = await newMember(nodes[0]!, "nine");
  // A node finds out with its next request that Redis is back.
  for (const node of nodes)
    await until(
      async () => {
        await (await node.post("/v1/chat/completions", bodyOf("chat", "acme/writer", false), { key })).text();
        return node.stderr().includes("rates_counted_in_redis");
      },
      20_000,
      "the node to count in Redis again",
    );
  expect((await letThrough()).admitted).toEqual([9, 0, 0]);
});
