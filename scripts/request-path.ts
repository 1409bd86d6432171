// `npm run request-path`: counts the files of src whose code a streamed chat request on a warm node runs before its
// client gets the first byte, and the awaits that are pending at the engine's first byte. Also lists the long ones of
// these files. `-- --files` lists all of them.

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
