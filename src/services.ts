/**
 * Fills the CLI's services with the rooms that do the work; of main's room. Each is loaded when a command first needs it:
 * `org list` through a server's socket reads neither a database driver nor the service itself.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import type { Services } from "./cli/services.ts";
import { processTerminal } from "./cli/terminal.ts";
import { systemUser } from "./cli/user.ts";
import { tlsTexts } from "./config/certificate.ts";
import type { Configuration, StorageSettings } from "./config/configuration.ts";
import { configurationPath, readEnvironment } from "./config/environment.ts";
import { descriptorLimit } from "./config/machine.ts";
import { ConfigurationError } from "./config/problem.ts";
import { type Reloadable, reloadable } from "./config/reload.ts";
import { needsSimulator, withSimulatorAt } from "./config/simulator.ts";
import { fileAge_ms, readFileBounded } from "./config/source.ts";
import type { Database } from "./postgres/database.ts";
import type { Simulator } from "./simulator/server.ts";
import { isContainer } from "./welcome.ts";

/** Set by the build to the version and the commit it was made from. */
declare const SLUICE_BUILD: string | undefined;
const isCompiled = typeof SLUICE_BUILD !== "undefined";

export function services(environment: NodeJS.ProcessEnv): Services {
  const version = typeof SLUICE_BUILD === "undefined" ? packageJson.version : SLUICE_BUILD;
  const terminal = processTerminal(environment);
  return {
    version,
    schema: async () => (await import("../db/migrate.ts")).migrations.at(-1)!.name,
    terminal,
    environment,
    user: systemUser(),
    now_ms: Date.now,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => randomBytes(bytes),
    prompts: async () => (await import("./cli/prompts.ts")).clackPrompts(),
    storage: () => storageOf(environment),
    configuration: async () => loaded(environment),
    openStore: async (storage) => {
      const created = creates(storage) ? storage.dataDir : null;
      const [database, { administration }, { ledger }, { refusedRequests }] = await Promise.all([
        openForCommand(storage),
        import("./postgres/administration.ts"),
        import("./postgres/ledger.ts"),
        import("./postgres/refused.ts"),
      ]);
      // Without this line, whoever forgot DATABASE_URL would look for organizations in an empty database.
      if (created) terminal.err(`sluice: created an embedded database in ${created}; DATABASE_URL is not set\n`);
      const directory = administration(database);
      return {
        administration: directory,
        operators: directory,
        plans: directory,
        notices: directory,
        // It is only read here: what a lapsed hold is charged does not matter.
        ledger: ledger(database, { recovery: "checkpoint" }),
        refused: refusedRequests(database),
        close: () => database.close(),
      };
    },
    async migrate(storage) {
      const [database, { migrate }] = await Promise.all([connected(storage), import("../db/migrate.ts")]);
      try {
        return await migrate(database);
      } finally {
        await database.close();
      }
    },
    async inspectDatabase(storage) {
      const [database, { differing, schemaOf }] = await Promise.all([connected(storage), import("../db/migrate.ts")]);
      try {
        const { whyNoSessions } = await import("./postgres/sessions.ts");
        const pooled = await whyNoSessions(database);
        if (pooled) throw new Error(`The database cannot be used: ${pooled}.`);
        const schema = await schemaOf(database);
        const where = database.kind === "postgres" ? "Postgres" : `The embedded database in ${storage.dataDir}`;
        return { says: `${where} responds.`, schema: { is: schema.is, problem: differing(schema) } };
      } finally {
        await database.close();
      }
    },
    descriptorLimit: () => descriptorLimit(),
    async inspectRedis(url) {
      const { redisConnection } = await import("./redis/connection.ts");
      const redis = redisConnection(url, () => {}, tlsTexts(storageOf(environment).redisTls, readFileBounded));
      try {
        await redis.ping(2000);
        return "Redis responds.";
      } finally {
        redis.close();
      }
    },
    certificates: async (configuration) => (await import("./certificates.ts")).certificatesOf(configuration),
    async draftConfiguration({ url, protocol, apiKey }) {
      const { initConfiguration } = await import("./config/init.ts");
      return initConfiguration({ url, protocol, apiKey, fetch, nowSeconds: Math.floor(Date.now() / 1000) });
    },
    async openapi(of) {
      if (of === "management") {
        const [{ renderManagement }, { managementOperations }] = await Promise.all([
          import("./http/management/document.ts"),
          import("./http/management/operations.ts"),
        ]);
        return renderManagement(managementOperations, packageJson.version);
      }
      const [{ renderOpenapi }, { operations }, { defaultModels }] = await Promise.all([
        import("./http/openapi/document.ts"),
        import("./http/operations.ts"),
        import("./config/models.ts"),
      ]);
      return renderOpenapi(operations, defaultModels(), packageJson.version);
    },
    serve: async ({ migrate }) => {
      const { configuration, stop } = await configurationInForce(environment);
      const { serve } = await import("./serve.ts");
      const { storage, server } = configuration.current();
      const database = await openForServing(storage, migrate && server.migrates);
      try {
        return await serve({
          version,
          contractVersion: packageJson.version,
          isCompiled,
          configuration,
          database,
          isTerminal: terminal.width !== null && !isContainer(environment),
          say: terminal.out,
          stopAsked,
          onReload: (reload) => void process.on("SIGHUP", reload),
          fileAge_ms: () => fileAge_ms(configurationPath(environment).path, Date.now()),
        });
      } finally {
        await stop();
      }
    },
    async simulate({ host, port }) {
      const { startSimulator } = await import("./simulator/server.ts");
      return startSimulator({ hostname: host, port });
    },
    untilStopped: async () => void (await stopAsked()),
  };
}

/** Throws ConfigurationError. */
function storageOf(environment: NodeJS.ProcessEnv): StorageSettings {
  const read = readEnvironment(environment, readFileBounded);
  if ("problems" in read) throw new ConfigurationError(read.problems);
  return read.settings.storage;
}

/** Throws ConfigurationError. */
async function loaded(environment: NodeJS.ProcessEnv): Promise<Configuration> {
  const { load } = await loader(environment);
  const configuration = load();
  if (configuration instanceof ConfigurationError) throw configuration;
  return configuration;
}

async function loader(environment: NodeJS.ProcessEnv) {
  const { loadConfiguration } = await import("./config/load.ts");
  const load = () => loadConfiguration({ env: environment, readFile: readFileBounded, simulatorUrl: null });
  return { load };
}

/** What serves: reloadable, and with the simulator running from the moment when a route first needs it. */
async function configurationInForce(environment: NodeJS.ProcessEnv) {
  const { load } = await loader(environment);
  let simulator: Simulator | null = null;
  const prepare = async (configuration: Configuration): Promise<Configuration> => {
    if (!needsSimulator(configuration)) return configuration;
    simulator ??= await (await import("./simulator/server.ts")).startSimulator();
    return withSimulatorAt(configuration, simulator.url);
  };
  const first = await prepare(await loaded(environment));
  const configuration: Reloadable = reloadable(first, { load, prepare });
  return { configuration, stop: async () => simulator?.stop() };
}

/** A command changes no schema: it brings one along where it creates the database, and else refuses any but its own. */
async function openForCommand(storage: StorageSettings): Promise<Database> {
  const isNew = creates(storage);
  return opened(storage, async (database) => {
    const { assertCurrent, migrate } = await import("../db/migrate.ts");
    await (isNew ? migrate(database) : assertCurrent(database));
  });
}

async function openForServing(storage: StorageSettings, mayMigrate: boolean): Promise<Database> {
  const isNew = creates(storage);
  return opened(storage, async (database) => {
    const [{ prepareToServe }, { whyNoSessions }] = await Promise.all([
      import("../db/migrate.ts"),
      import("./postgres/sessions.ts"),
    ]);
    const problem = await whyNoSessions(database);
    if (problem) throw new Error(`cannot use the database: ${problem}`);
    await prepareToServe(database, mayMigrate || isNew);
  });
}

async function opened(storage: StorageSettings, prepare: (database: Database) => Promise<void>): Promise<Database> {
  const database = await connected(storage);
  try {
    await prepare(database);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Whether opening creates a database. */
function creates({ databaseUrl, dataDir }: StorageSettings): boolean {
  return !databaseUrl && !existsSync(embeddedFolder(dataDir));
}

const embeddedFolder = (dataDir: string) => join(dataDir, "postgres");

async function connected(storage: StorageSettings): Promise<Database> {
  if (storage.databaseUrl) return (await import("./postgres/server.ts")).serverDatabase(storage.databaseUrl);
  return (await import("./postgres/embedded.ts")).embeddedDatabase(embeddedFolder(storage.dataDir), { isCompiled });
}

function stopAsked(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, resolve);
  });
}
