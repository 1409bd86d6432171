/** The commands that run something or print what it would run on: serve, simulator, migrate, openapi. */
import { writeFileSync } from "node:fs";
import type { Command } from "commander";
import type { Building } from "./building.ts";
import { jsonOption, printJson, wholeNumber } from "./option.ts";
import { runningServer } from "./reach.ts";
import type { Services } from "./services.ts";

const contract_file = "openapi.json";

export function addServiceCommands(program: Command, { services, exitWith }: Building): void {
  program
    .command("serve")
    .description("serve the API until it is told to stop")
    .addHelpText("after", serveHelp)
    .action(async () => exitWith(await services.serve()));

  program
    .command("simulator")
    .description("run the built-in engine alone, OpenAI-compatible")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port to listen on; 0 takes a free one", wholeNumber(0, 65_535), 9000)
    .action(async ({ host, port }: { host: string; port: number }) => {
      const simulator = await services.simulate({ host, port });
      services.terminal.out(`sluice simulator is serving on ${simulator.url}\n`);
      await services.untilStopped();
      await simulator.stop();
    });

  program
    .command("migrate")
    .description("bring the database to the shape that this build needs")
    .addOption(jsonOption())
    .action(async (options: { json?: boolean }) => {
      const applied = await migrated(services);
      if (options.json) return printJson(services.terminal, { applied });
      services.terminal.out(
        applied.length === 0 ? "The database is up to date.\n" : `Applied: ${applied.join(", ")}.\n`,
      );
    });

  program
    .command("openapi")
    .description("print the contract: OpenAPI 3.1, JSON")
    .option("--write [file]", `write it to a file instead (default: ${contract_file})`)
    .action(async ({ write }: { write?: string | true }) => {
      const contract = await services.openapi();
      if (!write) return services.terminal.out(contract);
      const file = write === true ? contract_file : write;
      writeFileSync(file, contract);
      services.terminal.out(`Wrote ${file}.\n`);
    });
}

/** A server that holds the embedded database has migrated it at its start. */
async function migrated(services: Services): Promise<string[]> {
  const storage = services.storage();
  return (await runningServer(services, storage)) ? [] : services.migrate(storage);
}

const serveHelp = `
Reads the environment and sluice.yaml:
  PORT, HOST           where to listen (8080 on 127.0.0.1)
  DATABASE_URL         a Postgres database; without it an embedded one is used
  SLUICE_DATA_DIR      where the embedded database lives (./data)
  REDIS_URL            Redis, where several nodes serve together
  SLUICE_CONFIG        the configuration (./sluice.yaml where it exists)
  SLUICE_UPSTREAM_URL  one engine for all models, without a file; with
                       SLUICE_UPSTREAM_KEY and SLUICE_UPSTREAM_MODEL`;
