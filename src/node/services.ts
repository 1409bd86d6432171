/**
 * Implements the CLI's services with the modules that do the work. Each is loaded when a command first needs it: `org
 * list` through a server's socket loads neither a database driver nor the service itself.
 */
import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { SchemaState } from "../../db/migrate.ts";
import packageJson from "../../package.json" with { type: "json" };
import type { Services } from "../admin/cli/services.ts";
import { processTerminal } from "../admin/cli/terminal.ts";
import { systemUser, userNumbered } from "../admin/cli/user.ts";
import { tlsTexts } from "../config/certificate.ts";
import type { Configuration, StorageSettings } from "../config/configuration.ts";
import { configurationPath, readEnvironment } from "../config/environment.ts";
import { coresOf, descriptorLimit, memoryMarkBytes } from "../config/machine.ts";
import { ConfigurationError } from "../config/problem.ts";
import { reloadable, type StartParts, startingFrom } from "../config/reload.ts";
import { needsSimulator, withSimulatorAt } from "../config/simulator.ts";
import { type ReadFile, readFileBounded } from "../config/source.ts";
import { type MachineRoom, workersIn } from "../config/workers.ts";
import type { Simulator } from "../features/simulator/server.ts";
import type { Member } from "../features/workers/member.ts";
import type { Database } from "../stores/postgres/database.ts";
import { isReadOnly } from "../stores/postgres/database-error.ts";
import type { DatabaseThread } from "../stores/postgres/embedded-thread.ts";
import { builtVersion, isCompiled } from "./build.ts";
import type { Early } from "./early.ts";
import { named } from "./naming.ts";
import { opened } from "./opening.ts";
import { processSignals, type Signals } from "./signals.ts";
import { isContainer } from "./welcome.ts";

const program: readonly [string, ...string[]] = isCompiled
  ? [process.execPath]
  : [process.execPath, ...process.execArgv, Bun.main];

/** Makes the CLI's services. `early`: the work that this start has begun already. */
export function services(environment: NodeJS.ProcessEnv, early: Early | null = null): Services {
  const version = builtVersion ?? packageJson.version;
  const terminal = processTerminal(environment);
  const signals = processSignals();
  return {
    version,
    schema: async () => (await import("../../db/migrate.ts")).migrations.at(-1)!.name,
    program,
    terminal,
    environment,
    user: systemUser(),
    now_ms: Date.now,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => randomBytes(bytes),
    prompts: async () => (await import("../admin/cli/prompts.ts")).clackPrompts(),
    storage: () => storageOf(environment),
    configuration: async () => loaded(environment),
    openStore: async (storage) => {
      const created = creates(storage) ? storage.dataDir : null;
      const [database, { administrationStores }, { ledger }, { refusedRequests }, { sealingOf }, { currencyOf }] =
        await Promise.all([
          openForCommand(storage),
          import("../stores/postgres/administration.ts"),
          import("../stores/postgres/ledger.ts"),
          import("../stores/postgres/refused.ts"),
          import("./sealing.ts"),
          import("../stores/postgres/currency.ts"),
        ]);
      // Without this line, a person who forgot DATABASE_URL would look for organizations in an empty database.
      if (created) terminal.err(`sluice: created an embedded database in ${created}; DATABASE_URL is not set\n`);
      return {
        ...administrationStores(database, { sealing: sealingOf(settingsOf(environment).server) }),
        // The ledger is only read here. It settles no lapsed holds, so it does not matter how `recovery` charges them.
        ledger: ledger(database, { recovery: "checkpoint" }),
        refused: refusedRequests(database),
        currency: () => currencyOf(database),
        close: () => database.close(),
      };
    },
    async migrate(storage) {
      assertOwnFiles(storage);
      const [database, { migrate, schemaOf }] = await Promise.all([connected(storage), import("../../db/migrate.ts")]);
      try {
        const applied = await written(() => migrate(database));
        return { applied, newer: newerIn(await schemaOf(database)) };
      } finally {
        await database.close();
      }
    },
    async compareSchema(applied) {
      const { compared, differing } = await import("../../db/migrate.ts");
      const schema = compared(applied);
      return { is: schema.is, problem: differing(schema), newer: newerIn(schema) };
    },
    async inspectDatabase(storage) {
      assertOwnFiles(storage);
      const [database, { differing, schemaOf }] = await Promise.all([
        connected(storage),
        import("../../db/migrate.ts"),
      ]);
      try {
        const [{ whyNoSessions }, { administratorsOutlook }, { administratorsProblem }, { fleet }, { silent_ms }] =
          await Promise.all([
            import("../stores/postgres/sessions.ts"),
            import("../stores/postgres/administrators.ts"),
            import("../admin/store/administrators.ts"),
            import("../stores/postgres/fleet-reports.ts"),
            import("../core/store/fleet.ts"),
          ]);
        const pooled = await whyNoSessions(database);
        if (pooled) throw new Error(`The database cannot be used: ${pooled}.`);
        const schema = await schemaOf(database);
        const where = database.kind === "postgres" ? "Postgres" : `The embedded database in ${storage.dataDir}`;
        const isCurrent = schema.is === "current";
        const administrators = isCurrent ? administratorsProblem(await administratorsOutlook(database)) : null;
        const reports = isCurrent ? await fleet(database).listProcesses() : [];
        const processes = reports.filter(({ age_ms }) => age_ms < silent_ms).length;
        const says = `${where} responds.`;
        return { says, schema: { is: schema.is, problem: differing(schema) }, administrators, processes };
      } finally {
        await database.close();
      }
    },
    descriptorLimit,
    room: roomHere,
    async inspectRedis(url) {
      const { redisConnection } = await import("../stores/redis/connection.ts");
      const redis = redisConnection(url, () => {}, tlsTexts(storageOf(environment).redisTls, readFileBounded));
      try {
        await redis.ping(2000);
        return "Redis responds.";
      } finally {
        redis.close();
      }
    },
    addresses: () => Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address)),
    certificates: async (configuration) => (await import("./certificates.ts")).certificatesOf(configuration),
    async draftConfiguration(engines, protocol) {
      const [{ initConfiguration }, { checkEngine: check }] = await Promise.all([
        import("../config/init.ts"),
        import("../config/check/check.ts"),
      ]);
      return initConfiguration({ engines, protocol, fetch, nowSeconds: Math.floor(Date.now() / 1000), check });
    },
    async openapi(of) {
      if (of === "management") {
        const { renderManagement } = await import("../admin/http/document.ts");
        return renderManagement(packageJson.version);
      }
      const [{ renderOpenapi }, { contract }, { defaultModels }] = await Promise.all([
        import("../features/openapi/document.ts"),
        import("./operations.ts"),
        import("../config/models.ts"),
      ]);
      return renderOpenapi(contract, defaultModels(), packageJson.version);
    },
    serve: async ({ migrate, worker, waitForDatabase_ms }) => {
      const member = worker === undefined ? null : await (await import("./worker.ts")).joinedAs(worker);
      const file = await fileOf(member, environment);
      const read = await loaded(environment, file.readFile);
      const first = member ? startingFrom(member.startParts as StartParts, read) : read;
      const workers = member ? 1 : workersIn(first.server.workers, roomHere(first));
      if (workers > 1) {
        const say = terminal.out;
        return supervised({ environment, configuration: first, workers, migrate, waitForDatabase_ms, signals, say });
      }
      const { storage, server } = first;
      // While the embedded database opens in its own thread, this thread loads the service.
      if (!storage.databaseUrl) await import("../stores/postgres/embedded.ts");
      const open = () =>
        openForServing(storage, migrate && server.migrates, {
          workers: member?.workers ?? 1,
          thread: early?.databaseThread,
        });
      const stopAsked = member?.stopAsked ?? signals.stopAsked;
      const stopping = stopAsked();
      const wait_ms = waitOf(first, member, waitForDatabase_ms);
      const [start, { configuration, stop }, { serve }] = await Promise.all([
        opened({ open, wait_ms, stopping, configuration: first, member }),
        configurationInForce(environment, first, file.readFile),
        setImmediate().then(() => import("./serve.ts")),
      ]);
      try {
        if (start === null) return 0;
        return await serve({
          ...start,
          version,
          contractVersion: packageJson.version,
          isCompiled,
          configuration,
          isTerminal: terminal.width !== null && !isContainer(environment),
          user: systemUser(),
          say: terminal.out,
          stopping,
          stopAsked,
          onReload: member?.onReload ?? signals.onReload,
          fileAge_ms: file.age_ms,
          member,
        });
      } finally {
        await stop();
      }
    },
    async simulate({ host, port }) {
      const { startSimulator } = await import("../features/simulator/server.ts");
      return startSimulator({ hostname: host, port });
    },
    untilStopped: async () => void (await signals.stopAsked()),
  };
}

/** Reads the environment. Throws ConfigurationError. */
function settingsOf(environment: NodeJS.ProcessEnv) {
  const read = readEnvironment(environment, readFileBounded);
  if ("problems" in read) throw new ConfigurationError(read.problems);
  return read.settings;
}

const storageOf = (environment: NodeJS.ProcessEnv): StorageSettings => settingsOf(environment).storage;

/** Throws ConfigurationError. */
async function loaded(environment: NodeJS.ProcessEnv, readFile: ReadFile = readFileBounded): Promise<Configuration> {
  const load = await loader(environment, readFile);
  const configuration = load();
  if (configuration instanceof ConfigurationError) throw configuration;
  return configuration;
}

async function loader(environment: NodeJS.ProcessEnv, readFile: ReadFile) {
  const { loadConfiguration } = await import("../config/load.ts");
  return () => loadConfiguration({ env: environment, readFile });
}

/** The memory and cores that all workers of a node may take together. */
function roomHere({ limits }: Configuration): MachineRoom {
  return { cores: coresOf(), memory_bytes: limits.memory_bytes || memoryMarkBytes() };
}

async function fileOf(member: Member | null, environment: NodeJS.ProcessEnv) {
  const { configurationFile, fileRead } = await import("./configuration-file.ts");
  const { path } = configurationPath(environment);
  return configurationFile(path, readFileBounded, member?.file ?? (() => fileRead(path, readFileBounded)));
}

interface Supervised {
  environment: NodeJS.ProcessEnv;
  configuration: Configuration;
  workers: number;
  migrate: boolean;
  waitForDatabase_ms: number | undefined;
  signals: Signals;
  say(text: string): void;
}

async function supervised(parts: Supervised): Promise<number> {
  const { environment, configuration, workers, migrate, waitForDatabase_ms: wait_ms, signals, say } = parts;
  const [{ supervise }, { configurationFile, fileRead }, { loadConfiguration }] = await Promise.all([
    import("./supervise.ts"),
    import("./configuration-file.ts"),
    import("../config/load.ts"),
  ]);
  const { path } = configurationPath(environment);
  return supervise({
    workers,
    configuration,
    environment,
    say,
    ...signals,
    room: roomHere(configuration),
    command: [
      ...[...program, "serve", ...(migrate ? [] : ["--no-migrate"])],
      ...(wait_ms === undefined ? [] : ["--wait-for-database", `${wait_ms / 1000}s`]),
      "--worker",
    ],
    readFile: () => fileRead(path, readFileBounded),
    load(file) {
      const { readFile } = configurationFile(path, readFileBounded, () => file);
      return loadConfiguration({ env: environment, readFile });
    },
  });
}

/**
 * How long a start waits for its database. The embedded database is not waited for, because only this process can start
 * it. Nor does a worker beside serving workers wait: it ends and is started again, so that clients reach the others.
 */
function waitOf({ storage, server }: Configuration, member: Member | null, asked_ms: number | undefined): number {
  if (!storage.databaseUrl || member?.isReplaced) return 0;
  return asked_ms ?? server.databaseWait_ms ?? Number.POSITIVE_INFINITY;
}

/** The configuration in force, which can be reloaded. The simulator is started once a route needs it. */
async function configurationInForce(environment: NodeJS.ProcessEnv, read: Configuration, readFile: ReadFile) {
  const load = await loader(environment, readFile);
  let simulator: Simulator | null = null;
  const prepare = async (configuration: Configuration, before?: Configuration): Promise<Configuration> => {
    if (configuration.namesFrom) return named(configuration, before);
    if (!needsSimulator(configuration)) return configuration;
    simulator ??= await (await import("../features/simulator/server.ts")).startSimulator();
    return withSimulatorAt(configuration, simulator.url);
  };
  const configuration = reloadable(await prepare(read), { load, prepare });
  return { configuration, stop: async () => simulator?.stop() };
}

/**
 * Opens the database for a command. A command creates the schema of a new database, and refuses any schema but its own
 * build's.
 */
async function openForCommand(storage: StorageSettings): Promise<Database> {
  assertOwnFiles(storage);
  const isNew = creates(storage);
  return prepared(storage, async (database) => {
    const [{ assertCurrent, migrate }, { assertWritable }] = await Promise.all([
      import("../../db/migrate.ts"),
      import("../stores/postgres/admits.ts"),
    ]);
    // Leaves a server that takes no writes, if there is another. Reading commands can do with it.
    await assertWritable(database).catch(() => {});
    await (isNew ? migrate(database) : assertCurrent(database));
  });
}

async function openForServing(
  storage: StorageSettings,
  mayMigrate: boolean,
  connecting: Connecting,
): Promise<Database> {
  const isNew = creates(storage);
  const prepare = async (database: Database) => {
    const [{ prepareToServe }, { whyNoSessions }, { assertWritable }] = await Promise.all([
      import("../../db/migrate.ts"),
      import("../stores/postgres/sessions.ts"),
      import("../stores/postgres/admits.ts"),
    ]);
    const problem = await whyNoSessions(database);
    if (problem) throw new Error(`cannot use the database: ${problem}`);
    await prepareToServe(database, mayMigrate || isNew);
    await assertWritable(database);
  };
  return prepared(storage, prepare, connecting);
}

async function prepared(
  storage: StorageSettings,
  prepare: (database: Database) => Promise<void>,
  connecting: Connecting = {},
): Promise<Database> {
  const database = await connected(storage, connecting);
  try {
    await written(() => prepare(database));
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** The names of a newer version's migrations in the schema, if this build can use the schema all the same. */
function newerIn(schema: SchemaState): string[] {
  return schema.is === "newer" && schema.additive ? schema.beyond : [];
}

/** Does work that may write. A server that refuses a write is left (address.ts), so the next one is tried once. */
async function written<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isReadOnly(error)) throw error;
    return work();
  }
}

function creates({ databaseUrl, dataDir }: StorageSettings): boolean {
  return !databaseUrl && !existsSync(embeddedFolder(dataDir));
}

/**
 * Refuses root the embedded database of another user (deploy/systemd): that user's server could not open the files that
 * root would make in it. While the server runs, root's commands go through its socket.
 */
function assertOwnFiles({ databaseUrl, dataDir }: StorageSettings): void {
  if (databaseUrl || process.getuid?.() !== 0) return;
  const folder = [embeddedFolder(dataDir), dataDir].find((one) => existsSync(one));
  const owner = folder === undefined ? 0 : statSync(folder).uid;
  if (owner === 0) return;
  throw new Error(
    `The embedded database in ${dataDir} is that of ${userNumbered(owner)}, whose server could not open files of root. Start the server, through which root's commands go, or run the command as that user.`,
  );
}

const embeddedFolder = (dataDir: string) => join(dataDir, "postgres");

interface Connecting {
  /** The number of processes that share the connections of a node. */
  workers?: number;
  /** The thread of the embedded database, if it was started early. */
  thread?: DatabaseThread | null | undefined;
}

async function connected(storage: StorageSettings, { workers = 1, thread = null }: Connecting = {}): Promise<Database> {
  if (storage.databaseUrl) {
    const { poolShare, serverDatabase } = await import("../stores/postgres/server.ts");
    return serverDatabase(storage.databaseUrl, { connections_max: poolShare(workers) });
  }
  const { embeddedDatabase } = await import("../stores/postgres/embedded.ts");
  return embeddedDatabase(embeddedFolder(storage.dataDir), { isCompiled, thread });
}
