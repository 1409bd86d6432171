// `npm run compared -- TABLE [GATEWAY,…]`: compares other gateways with Sluice. Runs one comparison, stores the results
// in scripts/compared/results.json, and writes the tables of docs/compared.md from that file. Without arguments, it
// only writes the page. `--from FILE` reads the output of an earlier run of the comparison's command (for the crash
// test, its --json file). `npm run compared -- governed` runs bench/governed, whose programs are named by environment
// variables, and passes further arguments on to it.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { command } from "./command.ts";
import { governed, pageOf, type Results, results } from "./compared/page.ts";
import { tables } from "./compared/tables.ts";

const page = "docs/compared.md";
const limit_ms = 3 * 3_600_000;
const usage = `usage: npm run compared -- [TABLE [GATEWAY,…] [--from FILE] [--note TEXT]]
  governed: words of bench/governed/run.ts
${tables.map(({ id, gateways }) => `  ${id}: ${Object.keys(gateways).join(", ")}`).join("\n")}`;

async function main(): Promise<void> {
  if (process.argv[2] === "governed") return runGoverned(process.argv.slice(3));
  const { table, names, from, note } = optionsOf(process.argv.slice(2));
  const all = JSON.parse(readFileSync(results, "utf8")) as Results;
  for (const name of names) {
    const { words, version, made } = table!.gateways[name]!;
    const before = loadavg()[0]!;
    const at = from ? statSync(from).mtime : new Date();
    const found = table!.found(from ? readFileSync(from, "utf8") : await ran(words, table!.file));
    const load = from ? "" : `${before.toFixed(0)} to ${loadavg()[0]!.toFixed(0)}`;
    const how = { version: await version(at), made, command: words.join(" "), note: note ?? "" };
    all[table!.id] = {
      ...all[table!.id],
      [name]: { ...how, at: at.toISOString().slice(0, 16), host: host(), load, cells: found.cells, score: found.score },
    };
    writeFileSync(results, `${JSON.stringify(all, null, 2)}\n`);
    console.log(`${table!.id}, ${name}: ${JSON.stringify(found.cells)}`);
  }
  writeFileSync(page, pageOf(readFileSync(page, "utf8"), all));
}

async function runGoverned(words: string[]): Promise<void> {
  const { code } = await command([process.execPath, "bench/governed/run.ts", ...words, "--json", governed], {
    limit_ms,
  });
  if (code !== 0) process.exit(code);
  const all = JSON.parse(readFileSync(results, "utf8")) as Results;
  writeFileSync(page, pageOf(readFileSync(page, "utf8"), all));
}

async function ran(words: string[], file?: string): Promise<string> {
  const { stdout } = await command(
    words.map((word) => (word === "bun" ? process.execPath : word)),
    { limit_ms },
  );
  return file ? readFileSync(file, "utf8") : stdout;
}

function host(): string {
  const memory_gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${memory_gib} GiB, Linux ${release()}`;
}

function optionsOf(words: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: words,
      allowPositionals: true,
      options: { from: { type: "string" }, note: { type: "string" } },
    });
    const [id, wanted, ...more] = positionals;
    const table = tables.find((one) => one.id === id);
    const names = wanted?.split(",") ?? Object.keys(table?.gateways ?? {});
    if ((id && !table) || more.length > 0 || names.some((name) => !table?.gateways[name])) throw new Error(usage);
    if (values.from && names.length !== 1) throw new Error(`--from is of one gateway\n${usage}`);
    return { table, names, from: values.from, note: values.note };
  } catch (failure) {
    console.error((failure as Error).message);
    process.exit(2);
  }
}

await main();
