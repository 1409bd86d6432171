/** The connection to Redis: its reports of outages, and the user as which it connects to the nodes of a cluster. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
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

test("one server takes keys of several tags; a cluster does not, nor does a proxy before one", async () => {
  const [server, cluster, proxy] = [await startRedis(), await startRedisCluster(), sharding()];
  const connectionTo = async (url: string) => {
    const connection = redisConnection(url, () => {});
    expect(connection.isOneServer()).toBe(false);
    await connection.ping(10_000);
    return connection;
  };
  const connections = await Promise.all([server.url, cluster.urls[0]!, proxy.url].map(connectionTo));
  expect(connections.map((one) => one.isOneServer())).toEqual([true, false, true]);
  await expect(connections[2]!.script("return 1")(["{a}", "{b}"], [])).rejects.toThrow("CROSSSLOT");
  expect(connections.map((one) => one.isOneServer())).toEqual([true, false, false]);
  for (const one of connections) one.close();
  proxy.stop();
  await Promise.all([server.stop(), cluster.stop()]);
});

describe("a user without the dangerous commands, INFO among them, is served", () => {
  /** Creates a user with a password on each server, and connects as that user. */
  async function connected(urls: readonly string[]) {
    const admins = urls.map((url) => new Redis(url));
    for (const admin of admins)
      await admin.call("ACL", "SETUSER", "plain", "on", ">x", "~*", "&*", "+@all", "-@dangerous");
    const connection = redisConnection(urls[0]!.replace("redis://", "redis://plain:x@"), () => {});
    await connection.ping(10_000);
    expect(await connection.script("return 1")(["{a}"], [])).toBe(1);
    const clients = String(await admins[0]!.call("CLIENT", "LIST"));
    connection.close();
    for (const admin of admins) admin.disconnect();
    return { isOneServer: connection.isOneServer(), connections: clients.split("user=plain").length - 1 };
  }

  test("on one connection to one server", async () => {
    const server = await startRedis();
    expect(await connected([server.url])).toEqual({ isOneServer: true, connections: 1 });
    await server.stop();
  });

  test("by a cluster", async () => {
    const cluster = await startRedisCluster();
    expect((await connected(cluster.urls)).isOneServer).toBe(false);
    await cluster.stop();
  });
});

test("a server that became a replica is left: the name may lead to another one", async () => {
  let connections = 0;
  const replica = answering({ evalsha: readOnly, eval: readOnly }, () => {
    connections += 1;
  });
  const connection = redisConnection(replica.url, () => {});
  await connection.ping(10_000);
  expect(connections).toBe(1);
  await expect(connection.script("return 1")(["{a}"], [])).rejects.toThrow("READONLY");
  await until(() => connections === 2, 10_000, "another connection");
  connection.close();
  replica.stop();
});

const readOnly = "-READONLY You can't write against a read only replica.\r\n";

/** A server that says that it is no cluster, but refuses every script as a server of a cluster does. */
const sharding = () => answering({ evalsha: "-CROSSSLOT Keys in request don't hash to the same slot\r\n" });

/** A server that responds to commands with these texts. `opened` is called for each connection. */
function answering(words: Record<string, string>, opened = () => {}) {
  const answers: Record<string, string> = {
    info: "$30\r\nloading:0\r\ncluster_enabled:0\r\n\r\n",
    ping: "+PONG\r\n",
    ...words,
  };
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: opened,
      data(socket, data) {
        for (const [, name] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g))
          socket.write(answers[name!.toLowerCase()] ?? "+OK\r\n");
      },
    },
  });
  return { url: `redis://127.0.0.1:${listener.port}`, stop: () => listener.stop(true) };
}

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
  // The hash slots of these keys are on different nodes.
  expect(await Promise.all(["{a}", "{b}", "{c}"].map((key) => one([key], [])))).toEqual([1, 1, 1]);
  connection.close();
  await cluster.stop();
});
