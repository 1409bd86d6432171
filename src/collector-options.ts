/**
 * How far the heap may grow before it is collected. By itself the runtime lets it grow to three times what is in use, and
 * to six before it looks at what is old, on a machine of 16 GB or more. It reads its options from the environment, once,
 * before any code runs: so the executable starts itself anew, in the same process, with two of them set.
 * Why and what it gains: docs/decisions/2026-11-22-heap-growth.md.
 */
import { dlopen, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";

/** Of the runtime's collector. Whoever sets one of them keeps theirs. */
export const collectorOptions: Readonly<Record<string, string>> = {
  /** The heap may grow by as much again as was in use, not by twice that. */
  BUN_JSC_heapGrowthMaxIncrease: "1",
  /** What is old is looked at once it leaves the new less than this share of the heap, not a third. */
  BUN_JSC_minEdenToOldGenerationRatio: "0.4",
};

type Environment = Readonly<Record<string, string | undefined>>;

/** The environment with all options set; null: it has them. */
export function withCollectorOptions(environment: Environment): Environment | null {
  const isSet = Object.keys(collectorOptions).every((name) => environment[name] !== undefined);
  return isSet ? null : { ...collectorOptions, ...environment };
}

/**
 * Starts this process anew with the options: same program, words, process id and streams. Returns only where they are set
 * already, or where the system has no such means (it is no Linux, or its C library has another name): the node then serves
 * without them.
 */
export function startWithCollectorOptions(environment: Environment): void {
  const wanted = withCollectorOptions(environment);
  if (wanted === null || process.platform !== "linux") return;
  try {
    const { symbols } = dlopen("libc.so.6", { execve: { args: ["ptr", "ptr", "ptr"], returns: "int" } });
    const words = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
    const pairs = Object.entries(wanted).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
    const [program, list, settings] = [text(process.execPath), pointers(words), pointers(pairs)];
    symbols.execve(ptr(program), ptr(list.addresses), ptr(settings.addresses));
    // Only a failure comes back. Kept until the system has read them.
    void [program, list.texts, settings.texts];
  } catch {}
}

const text = (value: string) => new TextEncoder().encode(`${value}\0`);

/** A list of texts, as C has them: their addresses, and none at the end. */
function pointers(values: readonly string[]) {
  const texts = values.map(text);
  return { texts, addresses: BigUint64Array.from([...texts.map((each) => BigInt(ptr(each))), 0n]) };
}
