/**
 * The entry: fills the CLI's services with the rooms that do the work. Nothing runs before main() (a compiled binary has
 * no top-level await), and nothing here decides anything.
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { migrate } from "../db/migrate.ts";
import packageJson from "../package.json" with { type: "json" };
import { clackPrompts } from "./cli/prompts.ts";
import { run } from "./cli/run.ts";
import type { Services } from "./cli/services.ts";
import { processTerminal } from "./cli/terminal.ts";
import type { StorageSettings } from "./config/configuration.ts";
import { readStorage } from "./config/environment.ts";
import { draftConfiguration, probeEngine } from "./config/init.ts";
import { needsSimulator, type Reloadable, reloadable } from "./config/load.ts";
import { defaultCatalog } from "./config/models.ts";
import { renderOpenapi } from "./http/contract/openapi.ts";
import { administration } from "./postgres/administration.ts";
import type { Database } from "./postgres/database.ts";
import { embeddedDatabase } from "./postgres/embedded.ts";
import { serverDatabase } from "./postgres/server.ts";
import { redisConnection } from "./redis/connection.ts";
import { changed_channel, serve } from "./serve.ts";
import { startSimulator } from "./simulator/server.ts";

/** Concurrent requests to upstreams; Bun queues silently beyond what stands in its environment at the start. */
const upstream_requests_max = 65_535;

/** Set by the build to the version and the commit it was made from. */
declare const SLUICE_BUILD: string | undefined;

async function main(): Promise<void> {
  const words = Bun.argv.slice(2);
  if (words[0] === "serve" || words[0] === "simulator") restartWithEnvironment(words);
  process.exitCode = await run(words, services(process.env));
}

/** Bun reads this variable before any code of ours runs, so the process replaces itself once, under the same pid. */
function restartWithEnvironment(words: string[]): void {
  if (process.env.BUN_CONFIG_MAX_HTTP_REQUESTS !== undefined || !process.execve) return;
  const environment = { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: String(upstream_requests_max) };
  const source = isCompiled() ? [] : [import.meta.path];
  process.execve(process.execPath, [process.execPath, ...source, ...words], environment as NodeJS.ProcessEnv);
}

function isCompiled(): boolean {
  return import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN");
}

function services(environment: NodeJS.ProcessEnv): Services {
  const version = typeof SLUICE_BUILD === "undefined" ? packageJson.version : SLUICE_BUILD;
  const terminal = processTerminal(environment);
  const load = () => loadedConfiguration(environment);
  return {
    version,
    terminal,
    environment,
    user: userInfo().username,
    nowMs: Date.now,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => randomBytes(bytes),
    prompts: async () => clackPrompts(),
    storage: () => readStorage(environment),
    configuration: async () => (await load()).configuration.current(),
    openStore: async (storage) => {
      const database = await openDatabase(storage);
      const redis = storage.redisUrl ? redisConnection(storage.redisUrl, () => {}) : null;
      return {
        administration: administration(database),
        changed: async (id) => void (await redis?.publish(changed_channel, id)),
        async close() {
          redis?.close();
          await database.close();
        },
      };
    },
    async migrate(storage) {
      const database = await connected(storage);
      try {
        return await migrate(database);
      } finally {
        await database.close();
      }
    },
    async inspectDatabase(storage) {
      const database = await connected(storage);
      await database.close();
      return database.kind === "postgres" ? "Postgres answers." : `The embedded database in ${storage.dataDir} opens.`;
    },
    async inspectRedis(url) {
      const redis = redisConnection(url, () => {});
      try {
        await redis.ping(2000);
        return "Redis answers.";
      } finally {
        redis.close();
      }
    },
    draftConfiguration: async ({ url, apiKey }) => {
      const engine = await probeEngine(url, apiKey, fetch);
      return { yaml: draftConfiguration(engine), models: engine.models.map((model) => model.id) };
    },
    openapi: async () => renderOpenapi([...defaultCatalog().models.values()], packageJson.version),
    async serve() {
      const { configuration, stop } = await load();
      const database = await openDatabase(configuration.current().storage);
      try {
        return await serve({
          version,
          contractVersion: packageJson.version,
          configuration,
          database,
          say: terminal.out,
          stopAsked,
          onReload: (reload) => void process.on("SIGHUP", reload),
        });
      } finally {
        await stop();
      }
    },
    async simulate({ host, port }) {
      return startSimulator({ host, port });
    },
    untilStopped: async () => void (await stopAsked()),
  };
}

/** Configuration in force, with the simulator running where a route needs it. */
async function loadedConfiguration(
  environment: NodeJS.ProcessEnv,
): Promise<{ configuration: Reloadable; stop(): Promise<void> }> {
  const simulator = await startSimulator({ host: "127.0.0.1", port: 0 });
  const configuration = await reloadable({
    env: environment,
    readFile: (path) => readFile(path, "utf8"),
    simulatorUrl: simulator.url,
  });
  return { configuration, stop: () => simulator.stop() };
}

async function openDatabase(storage: StorageSettings): Promise<Database> {
  const database = await connected(storage);
  await migrate(database);
  return database;
}

function connected(storage: StorageSettings): Promise<Database> {
  return storage.databaseUrl
    ? serverDatabase(storage.databaseUrl)
    : embeddedDatabase(join(storage.dataDir, "postgres"));
}

function stopAsked(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, resolve);
  });
}

void main();
