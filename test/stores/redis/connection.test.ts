/** The connection to Redis: what is told of outages, and who it is at the nodes of a cluster. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Redis } from "ioredis";
import { redisConnection } from "../../../src/stores/redis/connection.ts";
import { startRedisCluster } from "../../harness/cluster.ts";
import { startRedis } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

test("each outage is told once, however often the connection is tried again", async () => {
  const failures: unknown[] = [];
  let server = await startRedis();
  const connection = redisConnection(server.url, (cause) => failures.push(cause));
  await connection.ping(10_000);
  for (const outages of [1, 2]) {
    await server.stop();
    await until(() => failures.length === outages, 10_000, "the outage to be told");
    server = await startRedis(Number(new URL(server.url).port));
    await connection.ping(10_000);
    expect(failures).toHaveLength(outages);
  }
  connection.close();
  await server.stop();
});

test("the user and the password of the URL are those at every node of a cluster", async () => {
  const cluster = await startRedisCluster();
  for (const url of cluster.urls) {
    const client = new Redis(url);
    await client.call("ACL", "SETUSER", "gate@way", "on", ">p@ss", "~*", "&*", "+@all");
    await client.config("SET", "requirepass", "another");
    client.disconnect();
  }
  const url = new URL(cluster.urls[0]!);
  const connection = redisConnection(`redis://gate%40way:p%40ss@${url.host}`, () => {});
  await connection.ping(10_000);
  const one = connection.script("return 1");
  // Their slots are on different nodes.
  expect(await Promise.all(["{a}", "{b}", "{c}"].map((key) => one([key], [])))).toEqual([1, 1, 1]);
  connection.close();
  await cluster.stop();
});
