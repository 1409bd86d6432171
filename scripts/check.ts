// `npm run check`: checks types, lint and format, the structure, the contract, and the lock file. Prints all problems,
// and the numbers of files and `await`s that a request passes through.

import { existsSync, readFileSync } from "node:fs";
import { command } from "./command.ts";

const limit_ms = 10 * 60_000;

interface Finding {
  name: string;
  /** The problems, as text; empty if there are none. */
  says: string;
}

async function main(): Promise<void> {
  const findings = await Promise.all([
    program("types", ["node_modules/.bin/tsc", "-p", "."]),
    program("types of the console", ["node_modules/.bin/tsc", "-p", "console"]),
    program("lint and format", ["node_modules/.bin/biome", "ci", "--colors=off", "."]),
    program("the structure", [process.execPath, "test", "--timeout=120000", "test/house.test.ts"]),
    contract("the contract", "contract/openapi.json", []),
    contract("the management contract", "contract/management.json", ["--management"]),
    lockFile(),
  ]);
  for (const { name, says } of findings) {
    if (says !== "") console.error(`\n== ${name}\n${says.trimEnd()}\n`);
  }
  for (const { name, says } of findings) console.error(`${says === "" ? "ok    " : "FAILED"} ${name}`);
  console.error(
    (await command([process.execPath, "scripts/request-path.ts"], { limit_ms, quiet: true })).output.trim(),
  );
  process.exitCode = findings.every(({ says }) => says === "") ? 0 : 1;
}

async function program(name: string, words: string[]): Promise<Finding> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  return { name, says: code === 0 ? "" : output || `${words.join(" ")} ended with ${code}` };
}

/** Checks that the document in the repository equals the one that the code generates. */
async function contract(name: string, file: string, options: string[]): Promise<Finding> {
  const written = existsSync(file) ? readFileSync(file, "utf8") : "";
  const made = await command([process.execPath, "src/main.ts", "openapi", ...options], { limit_ms, quiet: true });
  if (made.code !== 0) return { name, says: made.output };
  if (made.stdout.trim() === written.trim()) return { name, says: "" };
  const again = ["npm run --silent sluice -- openapi", ...options, `>${file}`].join(" ");
  return { name, says: `${file} differs from the code. Write it again: ${again}` };
}

/** Checks that the lock file contains no URLs, which would bind all users to the registry of one machine. */
async function lockFile(): Promise<Finding> {
  const address = /https?:\/\/\S+/.exec(readFileSync("bun.lock", "utf8"))?.[0];
  const says =
    address === undefined ? "" : "bun.lock has an address: remove the registry from your settings and install again";
  return { name: "the lock file", says };
}

await main();
