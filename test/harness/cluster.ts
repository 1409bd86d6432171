// A Redis Cluster for one test: three nodes on this machine, each with a third of the slots and no replica.

import { join } from "node:path";
import { Redis } from "ioredis";
import { redisPrograms } from "./binaries.ts";
import { type Daemon, freePort, serviceFolder, startDaemon } from "./daemon.ts";

export interface RedisCluster {
  /** The URL of each node; any of them is enough to find the cluster. */
  urls: string[];
  stop(): Promise<void>;
}

const slots = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const;
const formed_ms = 20_000;

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes: { daemon: Daemon; port: number; busPort: number; client: Redis }[] = [];
  const stop = async () => {
    for (const { client } of nodes) client.disconnect();
    await Promise.all(nodes.map(({ daemon }) => daemon.stop()));
  };
  try {
    for (const [first, last] of slots) {
      const [port, busPort] = [await freePort(), await freePort()];
      const daemon = await startNode(port, busPort);
      const client = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: 3 });
      client.on("error", () => {});
      nodes.push({ daemon, port, busPort, client });
      await client.call("CLUSTER", "ADDSLOTSRANGE", first, last);
    }
    const [known, ...others] = nodes;
    for (const { port, busPort } of others) await known!.client.call("CLUSTER", "MEET", "127.0.0.1", port, busPort);
    const deadline = Date.now() + formed_ms;
    while (!(await everyNodeServes(nodes.map(({ client }) => client)))) {
      if (Date.now() > deadline) throw new Error(`no cluster formed within ${formed_ms} ms`);
      await Bun.sleep(50);
    }
    return { urls: nodes.map(({ port }) => `redis://127.0.0.1:${port}`), stop };
  } catch (failure) {
    await stop();
    throw failure;
  }
}

async function startNode(port: number, busPort: number): Promise<Daemon> {
  const programs = await redisPrograms();
  const folder = serviceFolder("redis-cluster");
  const settings = {
    "--port": `${port}`,
    "--bind": "127.0.0.1",
    "--save": "",
    "--appendonly": "no",
    "--dir": folder,
    "--cluster-enabled": "yes",
    "--cluster-port": `${busPort}`,
    "--cluster-node-timeout": "5000",
  };
  const probe = new Redis(port, "127.0.0.1", {
    lazyConnect: true,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  probe.on("error", () => {});
  try {
    return await startDaemon({
      name: "redis",
      command: [join(programs.folder, "redis-server"), ...Object.entries(settings).flat()],
      environment: programs.environment,
      folder,
      ready: async () => {
        if (probe.status === "wait") probe.connect().catch(() => {});
        return probe.status === "ready";
      },
      deadline_ms: 15_000,
    });
  } finally {
    probe.disconnect();
  }
}

async function everyNodeServes(clients: Redis[]): Promise<boolean> {
  const told = await Promise.all(clients.map((client) => client.call("CLUSTER", "INFO")));
  return told.every((text) => /cluster_state:ok/.test(String(text)) && /cluster_known_nodes:3/.test(String(text)));
}
