/** The Redis of compose.yaml, when it is full: it forgets old answers, and no minute that limits count by. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { parse } from "yaml";
import { redisLogs } from "../../src/stores/redis/answer-log.ts";
import { type RedisConnection, redisConnection } from "../../src/stores/redis/connection.ts";
import { type Service, startRedis } from "../harness/services.ts";
import { until } from "../harness/until.ts";

const compose = parse(readFileSync(join(import.meta.dir, "../../compose.yaml"), "utf8"), { merge: true });
const words: string[] = compose.services.redis.command;
const policy = words[words.indexOf("--maxmemory-policy") + 1]!;
let own: Service;
let connection: RedisConnection;
let client: Redis;
beforeAll(async () => {
  own = await startRedis(undefined, () => ({ "--maxmemory": "12mb", "--maxmemory-policy": policy }));
  connection = redisConnection(own.url, () => {});
  client = new Redis(own.url);
  await connection.ping(10_000);
}, 60_000);
afterAll(async () => {
  connection.close();
  client.disconnect();
  await own.stop();
});

test("a full Redis makes room of the answers of a day, and keeps the counters of this minute", async () => {
  const logs = redisLogs(connection, { kept_ms: () => 24 * 3_600_000 });
  const text = "x".repeat(64 * 1024);
  let written = 0;
  const append = async () => {
    const log = { organizationId: "org_1", requestId: `req_${written++}` };
    expect(await logs.append(log, 0, { text, isEnd: true })).toBe("appended");
  };
  const info = async (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(await client.info())?.[1]);
  while ((await info("used_memory")) < 10 * 1024 * 1024) await append();
  // Redis counts the age of a use in seconds.
  await until(async () => Number(await client.object("IDLETIME", "sluice:answer:{org_1}:req_0")) >= 2);
  const minutes = Array.from({ length: 20 }, (_, at) => `minute:${at}`);
  for (const minute of minutes) await client.set(minute, "59", "PX", 62_000);
  while ((await info("evicted_keys")) < 30) await append();
  expect(await client.exists(...minutes)).toBe(minutes.length);
});
