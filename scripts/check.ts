// `npm run check`: types, lint and format, the contract, the walls of the house, the lock file. Everything that is wrong
// is shown, then one exit code.

import { existsSync, readFileSync } from "node:fs";
import { command } from "./command.ts";

const limit_ms = 5 * 60_000;

interface Finding {
  name: string;
  /** Empty when all is well. */
  says: string;
}

async function main(): Promise<void> {
  const findings = await Promise.all([
    program("types", ["node_modules/.bin/tsc", "-p", "."]),
    program("lint and format", ["node_modules/.bin/biome", "ci", "--colors=off", "."]),
    program("the house", [process.execPath, "test", "test/house.test.ts"]),
    contract(),
    lockFile(),
  ]);
  for (const { name, says } of findings) {
    if (says !== "") console.error(`\n== ${name}\n${says.trimEnd()}\n`);
  }
  for (const { name, says } of findings) console.error(`${says === "" ? "ok    " : "FAILED"} ${name}`);
  process.exitCode = findings.every(({ says }) => says === "") ? 0 : 1;
}

async function program(name: string, words: string[]): Promise<Finding> {
  const { code, output } = await command(words, { limit_ms, quiet: true });
  return { name, says: code === 0 ? "" : output || `${words.join(" ")} ended with ${code}` };
}

/** What the code says of itself is what is checked in. */
async function contract(): Promise<Finding> {
  const name = "the contract";
  const written = existsSync("openapi.json") ? readFileSync("openapi.json", "utf8") : "";
  const made = await command([process.execPath, "src/main.ts", "openapi"], { limit_ms, quiet: true });
  if (made.code !== 0) return { name, says: made.output };
  if (made.stdout.trim() === written.trim()) return { name, says: "" };
  return {
    name,
    says: "openapi.json differs from the code. Write it anew: npm run --silent sluice -- openapi >openapi.json",
  };
}

/** An address in the lock file would bind everybody to the registry that one machine happened to use. */
async function lockFile(): Promise<Finding> {
  const address = /https?:\/\/\S+/.exec(readFileSync("bun.lock", "utf8"))?.[0];
  const says =
    address === undefined ? "" : "bun.lock holds an address: take the registry out of your settings and install again";
  return { name: "the lock file", says };
}

await main();
