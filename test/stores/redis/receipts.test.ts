/** The latest receipts, which Redis keeps in addition to the database, and the events of the connection. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { type RedisConnection, redisConnection } from "../../../src/stores/redis/connection.ts";
import { redisReceipts } from "../../../src/stores/redis/receipts.ts";
import { type Service, startRedis } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

const week_ms = 7 * 24 * 3_600_000;
const heard = { opened: 0, lost: 0 };
let own: Service;
let connection: RedisConnection;
let client: Redis;
beforeAll(async () => {
  own = await startRedis();
  const watcher = { answered() {}, opened: () => void heard.opened++, lost: () => void heard.lost++ };
  connection = redisConnection(own.url, () => {}, undefined, watcher);
  client = new Redis(own.url);
  await connection.ping(10_000);
}, 60_000);
afterAll(async () => {
  connection.close();
  client.disconnect();
  await own.stop();
});

test("the last receipts of a book are remembered for a week, the newest first", async () => {
  const receipts = redisReceipts(connection);
  const all = Array.from({ length: 1_002 }, (_, charged) => ({
    requestId: `req_${charged}`,
    organizationId: "org_1",
    charged,
  }));
  await receipts.remember("book", all.slice(0, 2));
  await receipts.remember("book", all.slice(2));
  await receipts.remember("book", []);
  expect(await receipts.recall("book")).toEqual(all.slice(2).reverse());
  expect(await receipts.recall("another book")).toEqual([]);
  const [key = ""] = await client.keys("*book*");
  const left_ms = await client.pttl(key);
  expect(left_ms).toBeLessThanOrEqual(week_ms);
  expect(left_ms).toBeGreaterThan(week_ms - 60_000);
});

test("a connection that Redis ended is lost and opened anew; one that is closed here is not lost", async () => {
  expect(heard).toEqual({ opened: 1, lost: 0 });
  await client.call("client", "kill", "type", "normal", "skipme", "yes");
  await until(() => heard.opened === 2);
  await connection.ping(10_000);
  expect(heard).toEqual({ opened: 2, lost: 1 });
  connection.close();
  await until(async () => !/^id=.*^id=/ms.test(String(await client.call("client", "list", "type", "normal"))));
  expect(heard).toEqual({ opened: 2, lost: 1 });
});
