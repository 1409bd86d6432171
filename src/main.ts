/**
 * The entry: fills the CLI's services with the rooms that do the work. Nothing runs before main() (a compiled binary has
 * no top-level await), and nothing here decides anything.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { migrate } from "../db/migrate.ts";
import packageJson from "../package.json" with { type: "json" };
import { run } from "./cli/run.ts";
import type { Services } from "./cli/services.ts";
import { processTerminal } from "./cli/terminal.ts";
import { systemUser } from "./cli/user.ts";
import type { Configuration, StorageSettings } from "./config/configuration.ts";
import { readEnvironment } from "./config/environment.ts";
import { initConfiguration } from "./config/init.ts";
import { loadConfiguration } from "./config/load.ts";
import { defaultModels } from "./config/models.ts";
import { ConfigurationError } from "./config/problem.ts";
import { type Reloadable, reloadable } from "./config/reload.ts";
import { needsSimulator, withSimulatorAt } from "./config/simulator.ts";
import { readFileBounded } from "./config/source.ts";
import { renderOpenapi } from "./http/contract/openapi.ts";
import { administration } from "./postgres/administration.ts";
import type { Database } from "./postgres/database.ts";
import { embeddedDatabase } from "./postgres/embedded.ts";
import { serverDatabase } from "./postgres/server.ts";
import { redisConnection } from "./redis/connection.ts";
import { changed_channel, serve } from "./serve.ts";
import { type Simulator, startSimulator } from "./simulator/server.ts";

/** Concurrent requests to upstreams; Bun queues silently beyond what stands in its environment at the start. */
const upstream_requests_max = 65_535;

/** Set by the build to the version and the commit it was made from. */
declare const SLUICE_BUILD: string | undefined;

async function main(): Promise<void> {
  const words = Bun.argv.slice(2);
  if (words[0] === "serve" || words[0] === "simulator") restartWithEnvironment(words);
  process.exitCode = await run(words, services(process.env));
  // Everything is settled, written and closed: nothing that still ticks may keep a stopped node alive.
  if (words[0] === "serve") process.exit();
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
  return {
    version,
    terminal,
    environment,
    user: systemUser(),
    nowMs: Date.now,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => randomBytes(bytes),
    prompts: async () => (await import("./cli/prompts.ts")).clackPrompts(),
    storage: () => {
      const read = readEnvironment(environment);
      if ("problems" in read) throw new ConfigurationError(read.problems);
      return read.settings.storage;
    },
    configuration: async () => loaded(environment),
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
    draftConfiguration: async ({ url, apiKey }) =>
      initConfiguration({ url, apiKey, fetch, nowSeconds: Math.floor(Date.now() / 1000) }),
    openapi: async () => renderOpenapi(defaultModels(), packageJson.version),
    async serve() {
      const { configuration, stop } = await configurationInForce(environment);
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
      return startSimulator({ hostname: host, port });
    },
    untilStopped: async () => void (await stopAsked()),
  };
}

/** Throws ConfigurationError. */
function loaded(environment: NodeJS.ProcessEnv): Configuration {
  const configuration = loadConfiguration({ env: environment, readFile: readFileBounded, simulatorUrl: null });
  if (configuration instanceof ConfigurationError) throw configuration;
  return configuration;
}

/** What serves: with the simulator running from the moment when a route first needs it, and reloadable. */
async function configurationInForce(environment: NodeJS.ProcessEnv) {
  let simulator: Simulator | null = null;
  const prepare = async (configuration: Configuration): Promise<Configuration> => {
    if (!needsSimulator(configuration)) return configuration;
    simulator ??= await startSimulator();
    return withSimulatorAt(configuration, simulator.url);
  };
  const configuration: Reloadable = reloadable(await prepare(loaded(environment)), {
    load: () => loaded(environment),
    prepare,
  });
  return { configuration, stop: async () => simulator?.stop() };
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
