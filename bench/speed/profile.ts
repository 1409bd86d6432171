// Summarizes a CPU profile of a node: the CPU time of each part of the program.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  samples: number[];
  timeDeltas: number[];
}

/** The part of the program to which a function belongs: a module of src, a package, or a part of the runtime. */
export function partOf({ functionName, url }: { functionName: string; url: string }): string {
  const own = /\/(src(?=\/)|db)\/((?:(?:core|features|admin|stores)\/)?[^/]+)/.exec(
    url.replace(/.*\/node_modules\//, "package:"),
  );
  if (own && !url.includes("/node_modules/")) return own[2]!.endsWith(".ts") ? "src" : `${own[1]}/${own[2]}`;
  const named = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url);
  if (named) return named[1]!;
  if (functionName === "(idle)") return "idle";
  if (functionName.startsWith("(garbage")) return "garbage collection";
  return url === "" ? "the runtime, native" : "the runtime, JavaScript";
}

/** The CPU time in microseconds of each part, the largest first. Idle time is left out. */
export function timeByPart({ nodes, samples, timeDeltas }: Profile): [string, number][] {
  const parts = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const times = new Map<string, number>();
  for (const [at, id] of samples.entries()) {
    const part = parts.get(id) ?? "unknown";
    times.set(part, (times.get(part) ?? 0) + (timeDeltas[at] ?? 0));
  }
  times.delete("idle");
  return [...times].sort(([, one], [, other]) => other - one);
}

/** A table of the largest parts in the profile in that folder. */
export function profileTable(folder: string): string {
  const name = readdirSync(folder).find((one) => one.endsWith(".cpuprofile"));
  if (!name) throw new Error("the node has left no profile");
  const times = timeByPart(JSON.parse(readFileSync(join(folder, name), "utf8")) as Profile);
  const all = times.reduce((sum, [, time_us]) => sum + time_us, 0);
  const rows = times
    .map(([part, time_us]) => [part, Math.round((100 * time_us) / all)] as const)
    .filter(([, percent]) => percent >= 1);
  return [
    "| part | % of the samples |",
    "| --- | --- |",
    ...rows.map(([part, percent]) => `| ${part} | ${percent} |`),
  ].join("\n");
}
