/** The commands around the server: serve, simulator, migrate, openapi. */
import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { workers_max } from "../../config/settings/sections.ts";
import { compact } from "../../core/protocol/json.ts";
import { runningServer } from "./connect.ts";
import { duration, type JsonFlag, jsonOption, printJson, wholeNumber } from "./option.ts";
import type { CommandContext, Migrations, Services } from "./services.ts";
import { socketMigrations } from "./socket.ts";

const document_files = { api: "openapi.json", management: "management.json" };

interface ServeOptions {
  migrate: boolean;
  waitForDatabase?: number;
  worker?: number;
}

export function addServerCommands(program: Command, { services, exitWith }: CommandContext): void {
  program
    .command("serve")
    .description("serve the API until stopped")
    .option("--no-migrate", "refuse to start on a database that is not migrated (default: migrate it)")
    .option(
      "--wait-for-database <duration>",
      "wait this long for a Postgres that cannot be reached (default: until it can)",
      duration,
    )
    .addOption(
      new Option("--worker <n>", "of a node of several workers: this one")
        .argParser(wholeNumber(1, workers_max))
        .hideHelp(),
    )
    .addHelpText("after", serveHelp)
    .action(async ({ migrate, worker, waitForDatabase: waitForDatabase_ms }: ServeOptions) =>
      exitWith(await services.serve({ migrate, ...compact({ worker, waitForDatabase_ms }) })),
    );

  program
    .command("simulator")
    .description("run only the built-in demonstration engine (OpenAI-compatible)")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port to listen on; 0 picks a free port", wholeNumber(0, 65_535), 9000)
    .action(async ({ host, port }: { host: string; port: number }) => {
      const simulator = await services.simulate({ host, port });
      services.terminal.out(`sluice simulator is serving on ${simulator.url}\n`);
      await services.untilStopped();
      await simulator.stop();
    });

  program
    .command("migrate")
    .description("update the database schema to this version")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const { applied, newer } = await migrate(services);
      const isNewer = newer.length > 0;
      if (options.json) return printJson(services.terminal, { applied, ...(isNewer ? { newer } : {}) });
      if (isNewer)
        services.terminal.out(`The database is newer, and this version can use it: it has ${newer.join(", ")}.\n`);
      else if (applied.length > 0) services.terminal.out(`Applied: ${applied.join(", ")}.\n`);
      else services.terminal.out("The database is up to date.\n");
    });

  program
    .command("openapi")
    .description("print the OpenAPI 3.1 document of the API")
    .option("--management", "print that of the management interface instead")
    .option("--write [file]", "write it to a file instead (default: openapi.json, or management.json)")
    .action(async ({ write, management }: { write?: string | true; management?: true }) => {
      const of = management ? "management" : "api";
      const document = await services.openapi(of);
      if (!write) return services.terminal.out(document);
      const file = write === true ? document_files[of] : write;
      writeFileSync(file, document);
      services.terminal.out(`Wrote ${file}.\n`);
    });
}

/** Migrates the database. A server that holds the embedded database migrated it when it started, as its own version has it. */
async function migrate(services: Services): Promise<Migrations> {
  const storage = services.storage();
  if (!(await runningServer(services, storage))) return services.migrate(storage);
  const applied = await socketMigrations(storage);
  const { problem, newer } = applied ? await services.compareSchema(applied) : { problem: null, newer: [] };
  if (problem === null || newer.length > 0) return { applied: [], newer };
  throw new Error(`the running server is another version, and holds the database; stop it first (${problem})`);
}

const serveHelp = `
Settings come from sluice.yaml and from environment variables:
  PORT, HOST           where to listen (default: 8080 on 127.0.0.1)
  DATABASE_URL         Postgres database (default: an embedded database)
  SLUICE_MIGRATE       false: as --no-migrate (default: true)
  SLUICE_WAIT_FOR_DATABASE_MS
                       as --wait-for-database, in milliseconds
  SLUICE_DATA_DIR      folder of the embedded database (default: ./data)
  REDIS_URL            Redis, for a service of several nodes
  SLUICE_WORKERS       processes that share the port, a number or auto: one for
                       each core (default: 1); several need Postgres and Redis
  SLUICE_WARM_UP_MS    how long a node may warm up before it is ready, in
                       milliseconds (default: 2000); 0: not at all
  SLUICE_TLS_CERTIFICATE_FILE, SLUICE_TLS_KEY_FILE
                       serve HTTPS (default: HTTP)
  SLUICE_CONFIG        configuration file (default: ./sluice.yaml, if it exists)
  SLUICE_UPSTREAM_URL  one engine for all models, not the file's; see also
                       SLUICE_UPSTREAM_KEY and SLUICE_UPSTREAM_MODEL`;
