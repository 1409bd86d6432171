// Writes and parses the last line of a test run: `N passed, N failed, N skipped`.

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export const nothing: Counts = Object.freeze({ passed: 0, failed: 0, skipped: 0 });

export const sum = (one: Counts, other: Counts): Counts => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
  skipped: one.skipped + other.skipped,
});

const closing = /^(\d+) passed, (\d+) failed, (\d+) skipped$/gm;

/** The counts in the last line that `close` wrote; null if there is no such line. */
export function closingCounts(output: string): Counts | null {
  const line = [...output.matchAll(closing)].at(-1);
  return line ? { passed: Number(line[1]), failed: Number(line[2]), skipped: Number(line[3]) } : null;
}

/**
 * Returns the counts of a step. A step without counts of its own counts as one test. A step that failed, or that
 * neither passed nor skipped anything, has at least one failure.
 */
export function countsOfStep({ code, output }: { code: number; output: string }, hasCounts: boolean): Counts {
  const own = hasCounts ? (closingCounts(output) ?? nothing) : { ...nothing, passed: code === 0 ? 1 : 0 };
  return atLeastOneFailure(own, code !== 0 || own.passed + own.skipped === 0);
}

function atLeastOneFailure(counts: Counts, hasFailed: boolean): Counts {
  return counts.failed === 0 && hasFailed ? { ...counts, failed: 1 } : counts;
}

/**
 * The counts of `bun test`, parsed from its output. Its JUnit file is not used, because a test file that throws while
 * it is loaded is missing there. A run that failed, and a run without passed tests, has at least one failure.
 */
export function countsOf(output: string, code: number): Counts {
  const count = (word: string) => {
    const lines = [...output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm"))];
    return Number(lines.at(-1)?.[1] ?? 0);
  };
  const counts = {
    passed: count("pass"),
    // Bun counts a file that throws both as a failure and as an error.
    failed: Math.max(count("fail"), count("errors?")),
    skipped: count("skip") + count("todo"),
  };
  return atLeastOneFailure(counts, code !== 0 || counts.passed === 0);
}

/**
 * The files with failures, and the number of their failures, from the output of `bun test --parallel`, which prints
 * each file's name before the file's output.
 */
export function failedFiles(output: string): { files: string[]; failures: number } {
  const files = new Set<string>();
  let failures = 0;
  let file: string | undefined;
  for (const line of output.split("\n")) {
    // From here on, the output repeats the failures of all files.
    if (/^\d+ tests? failed:$/.test(line)) break;
    file = /^(\S+\.test\.ts):$/.exec(line)?.[1] ?? file;
    if (file === undefined || !/^(\(fail\) |# Unhandled error)/.test(line)) continue;
    files.add(file);
    failures += 1;
  }
  return { files: [...files], failures };
}

/** Whether `bun test` finished, which it shows by printing the number of tests. */
export function isWholeRun(output: string): boolean {
  return /^Ran \d+ tests? across \d+ files?\./m.test(output);
}

/** The file whose tests were running when `bun test` ended. */
export function lastFile(output: string): string | undefined {
  return [...output.matchAll(/^(\S+\.test\.ts):$/gm)].at(-1)?.[1];
}

/**
 * The output of each failure, for a reader who sees only the end of the log. Of several failures with the same name,
 * only the first is returned.
 */
export function failuresOf(output: string, lines_max = 30): string[] {
  const lines = output.split("\n");
  const told = new Map<string, string>();
  for (const [at, line] of lines.entries()) {
    const name = /^\(fail\) (.*?)(?: \[[^\]]*\])?$/.exec(line)?.[1];
    if (name === undefined || told.has(name)) continue;
    let from = at;
    while (from > 0 && at - from < lines_max && !/^\((pass|fail|skip|todo)\) /.test(lines[from - 1]!)) from--;
    told.set(name, lines.slice(from, at + 1).join("\n"));
  }
  return [...told.values()];
}

/** The text that precedes the names of failed files or steps that are run again, alone. */
export const onceMore = "Once more, by themselves:";

/** The text that precedes the names of files or steps that passed when they ran again, alone. */
export const passedAlone = "Unsteady: failed beside others, and passed alone:";

/** The names of the failed tests, by the last run if files ran again. */
export function failedTests(output: string): string[] {
  const last = output.slice(Math.max(0, output.lastIndexOf(onceMore)));
  return [...new Set([...last.matchAll(/^\(fail\) (.*?)(?: \[[^\]]*\])?$/gm)].map(([, name]) => name!))];
}

/** Prints the last line, after all other output, and exits with the matching code. */
export async function close(counts: Counts): Promise<never> {
  const written = (channel: NodeJS.WriteStream, text: string) =>
    new Promise<void>((resolve) => channel.write(text, () => resolve()));
  await written(process.stderr, "");
  await written(process.stdout, `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  process.exit(counts.failed === 0 ? 0 : 1);
}
