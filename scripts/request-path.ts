// `npm run request-path`: how many files of src a warm streamed chat request with a key runs before its client has the first
// byte, which of them are long, and how many awaits are pending at the engine's first byte. `-- --files` lists the files.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "./command.ts";

const goals = { files: 60, awaits: 12 };
const limit_ms = 60_000;
const lines_max = 300;

async function measured(what: keyof typeof goals): Promise<unknown> {
  const words = [process.execPath, join(import.meta.dir, "request-path/measure.ts"), what];
  const { code, output, stdout } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new Error(output);
  return JSON.parse(stdout.trim().split("\n").at(-1)!);
}

const [files, awaits] = await Promise.all([measured("files") as Promise<string[]>, measured("awaits")]);
if (process.argv.includes("--files")) for (const file of files) console.log(file);
const modules = Map.groupBy(files, (file) => file.split("/").slice(1, 3).join("/"));
const counts = [...modules].map(([name, inside]) => `${name} ${inside.length}`);
console.log(`A streamed chat request runs ${files.length} files of src (goal ${goals.files}): ${counts.join(", ")}.`);
const linesOf = (file: string) => readFileSync(join(import.meta.dir, "..", file), "utf8").split("\n").length - 1;
const long = files.filter((file) => linesOf(file) > lines_max).map((file) => `${file} ${linesOf(file)}`);
console.log(`${long.length} of them have more than ${lines_max} lines: ${long.join(", ") || "none"}.`);
console.log(`${awaits} awaits are pending at the engine's first byte (goal ${goals.awaits}).`);
