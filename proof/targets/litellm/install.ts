// Installs LiteLLM with its database client from packages alone: a Python environment, Prisma's client for it, and
// Prisma's engines in WebAssembly in place of the programs that Prisma would download. `bun
// proof/targets/litellm/install.ts` does that, and prints the environment variables by which bench/governed finds it.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { command } from "../../../scripts/command.ts";
import { pythonWith } from "../../../test/clients/virtual-environment.ts";
import { postgresProgram } from "../../stores.ts";

export interface Installed {
  program: string;
  /** The path of an SQL file that creates LiteLLM's tables. */
  schema: string;
  version: string;
  environment: Record<string, string>;
}

/**
 * The npm packages of the engine version for which the Python client was made, and those of a newer version, which
 * include the schema engine.
 */
const packages = {
  "@prisma/client": "5.17.0",
  "@prisma/adapter-pg": "5.17.0",
  "@prisma/driver-adapter-utils": "5.17.0",
  pg: "8.23.1",
  graphql: "16.15.0",
  "@prisma/schema-engine-wasm": "8.1.0-2.59be4fda12412a79eeb9c2ae727b6aa723593323",
  "adapter-of-schema": "npm:@prisma/adapter-pg@7.10.1",
  "utils-of-schema": "npm:@prisma/driver-adapter-utils@7.10.1",
};
/** The engine version that the Python client requires when it starts. */
const engine_version = "393aa359c9ad4a4bb28630fb5613f9c281cde053";
const limit_ms = 10 * 60_000;

export async function installed(): Promise<Installed> {
  const folder = resolve(".cache/clients/litellm-books");
  mkdirSync(folder, { recursive: true });
  const requirements = join(folder, "requirements.txt");
  const wanted = `${readFileSync("bench/speed/litellm.txt", "utf8")}prisma==0.15.0\n`;
  writeFileSync(requirements, wanted);
  const python = resolve(await pythonWith(requirements, "litellm-books/python"));
  const bin = join(python, "..");
  const environment = {
    PRISMA_QUERY_ENGINE_BINARY: join(folder, "query-engine"),
    // This is only set to keep Prisma from downloading the schema engine.
    PRISMA_SCHEMA_ENGINE_BINARY: join(folder, "query-engine"),
    PRISMA_HOME_DIR: folder,
    LITELLM_PRISMA: folder,
    PATH: `${bin}:${process.env.PATH}`,
  };
  const found = { program: join(bin, "litellm"), schema: join(folder, "schema.sql"), environment };
  const version = /^litellm==(.+)$/m.exec(wanted)![1]!;
  const madeFrom = join(folder, "made-from.json");
  const made = JSON.stringify({ wanted, packages });
  if (!existsSync(madeFrom) || readFileSync(madeFrom, "utf8") !== made) {
    await makeEngines(folder, python, found);
    writeFileSync(madeFrom, made);
  }
  return { ...found, version };
}

async function makeEngines(folder: string, python: string, { environment, schema }: Omit<Installed, "version">) {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: packages }));
  await ran(["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"], environment);
  const engine = `#!/bin/sh
[ "$1" = --version ] && echo "query-engine ${engine_version}" && exit
exec node ${resolve(import.meta.dir, "query-engine.mjs")} "$@"
`;
  writeFileSync(environment.PRISMA_QUERY_ENGINE_BINARY!, engine, { mode: 0o755 });
  const [site] = new Bun.Glob("lib/python*/site-packages/litellm/proxy/schema.prisma").scanSync(join(python, "../.."));
  const prisma = join(python, "../..", site!);
  await ran([join(python, "../prisma"), "generate", "--schema", prisma], environment);
  // The schema engine requires a database, which it does not change.
  const postgres = await postgresProgram();
  await postgres.start();
  const words = ["node", join(import.meta.dir, "schema.mjs"), prisma];
  const made = ran(words, { ...environment, DATABASE_URL: postgres.url });
  writeFileSync(schema, await made.finally(() => postgres.stop()));
}

async function ran(words: string[], environment: Record<string, string>): Promise<string> {
  const { code, output, stdout } = await command(words, { limit_ms, environment, quiet: true });
  if (code !== 0) throw new Error(`${words.join(" ")}: ${output.slice(-2000)}`);
  return stdout;
}

if (import.meta.main) {
  const { program, schema, environment } = await installed();
  const { PATH: _, ...rest } = environment;
  const all = { GOVERNED_LITELLM: program, GOVERNED_LITELLM_SCHEMA: schema, ...rest };
  for (const [name, value] of Object.entries(all)) console.log(`export ${name}=${value}`);
}
