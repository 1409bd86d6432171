// `npm run release:try`: installs each package that `npm run release` made as a user would, from its file alone, on a
// system without any of this repository's files. Then tests the program as `npm run smoke` does. `-- npm debian` tries
// only these packages. For a package that cannot be tried on this machine, the reason is printed.

import { readFileSync } from "node:fs";
import { command } from "./command.ts";
import { type Counts, close } from "./counts.ts";
import { CannotTry, tries } from "./release/tries.ts";

const limit_ms = 15 * 60_000;

async function main(): Promise<void> {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !(name in tries));
  if (unknown.length > 0) throw new Error(`There is no ${unknown}, but ${Object.keys(tries).join(", ")}.`);
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [name, prepare] of Object.entries(tries)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const tried = await prepare(version).catch((failure: Error) => failure);
    if (tried instanceof Error) {
      const cannot = tried instanceof CannotTry;
      counts[cannot ? "skipped" : "failed"]++;
      console.log(`\n${name}: ${cannot ? "not tried" : "failed"}. ${tried.message}`);
      continue;
    }
    console.log(`\n${name}: ${tried.about}`);
    const words = ["scripts/smoke.ts", ...tried.options, "--", ...tried.words];
    const { code } = await command([process.execPath, ...words], { limit_ms, environment: tried.environment });
    counts[code === 0 ? "passed" : "failed"]++;
    tried.end();
  }
  await close(counts);
}

await main();
