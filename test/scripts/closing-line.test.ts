import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { command } from "../../scripts/command.ts";
import {
  closingCounts,
  countsOf,
  countsOfStep,
  failedFiles,
  failedTests,
  failuresOf,
  isWholeRun,
  lastFile,
  onceMore,
} from "../../scripts/counts.ts";
import { until } from "../harness/until.ts";

/** Waits until the process has ended. A zombie, whose parent has not waited for it yet, counts as ended. */
const gone = (pid: number) =>
  until(
    () => !existsSync(`/proc/${pid}/stat`) || readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z "),
    3000,
    `process ${pid} to end`,
  );

const ran = (lines: string) => `bun test v1.4.5\n\n${lines}Ran 4 tests across 2 files. [84.00ms]\n`;

test.each<[what: string, output: string, code: number, passed: number, failed: number, skipped: number]>([
  [
    "counts what bun counted, and what is yet to do as skipped",
    ran(" 40 pass\n 2 skip\n 1 todo\n 0 fail\n"),
    0,
    40,
    0,
    3,
  ],
  ["counts failures", ran(" 1 pass\n 2 fail\n"), 1, 1, 2, 0],
  ["a file that cannot be loaded is a failure", ran(" 3 pass\n 1 fail\n 1 error\n"), 1, 3, 1, 0],
  ["two files that cannot be loaded are two", ran(" 3 pass\n 0 fail\n 2 errors\n"), 1, 3, 2, 0],
  ["a run that was cut short has failed", "(pass) a\n", 139, 0, 1, 0],
  ["a run that was ended has failed", ran(" 5 pass\n 0 fail\n"), 124, 5, 1, 0],
  ["a run that ran no test has failed", ran(" 0 pass\n 2 skip\n 0 fail\n"), 0, 0, 1, 2],
  ["a run that said nothing has failed", "", 0, 0, 1, 0],
  ["a test that prints such a line does not count", `5 pass\n 99 pass\n${ran(" 1 pass\n 0 fail\n")}`, 0, 1, 0, 0],
])("the closing line of a test run: %s", (_, output, code, passed, failed, skipped) => {
  expect(countsOf(output, code)).toEqual({ passed, failed, skipped });
});

describe("the counts of a step of several", () => {
  const line = "3 passed, 0 failed, 2 skipped\n";

  test("are those of its last closing line", () => {
    expect(closingCounts(`1 passed, 1 failed, 0 skipped\n${line}`)).toEqual({ passed: 3, failed: 0, skipped: 2 });
    expect(closingCounts("it said: 3 passed, 0 failed, 2 skipped\n")).toBeNull();
    expect(countsOfStep({ code: 0, output: line }, true)).toEqual({ passed: 3, failed: 0, skipped: 2 });
  });

  test("are one where it has none of its own", () => {
    expect(countsOfStep({ code: 0, output: line }, false)).toEqual({ passed: 1, failed: 0, skipped: 0 });
    expect(countsOfStep({ code: 1, output: line }, false)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  });

  test("have a failure if it did not succeed, had nothing to do, or has no closing line", () => {
    expect(countsOfStep({ code: 124, output: line }, true)).toEqual({ passed: 3, failed: 1, skipped: 2 });
    expect(countsOfStep({ code: 0, output: "0 passed, 0 failed, 0 skipped\n" }, true).failed).toBe(1);
    expect(countsOfStep({ code: 0, output: "0 passed, 0 failed, 2 skipped\n" }, true).failed).toBe(0);
    expect(countsOfStep({ code: 0, output: "" }, true).failed).toBe(1);
  });
});

test("what failed is said again at the end, with what it said, once, and nothing of its neighbours", () => {
  const output = "(pass) a > one [1.00ms]\nerror: expected 1\n(fail) a > two [2.00ms]\n(pass) a > three [1.00ms]\n";
  const failures = ["error: expected 1\n(fail) a > two [2.00ms]"];
  expect(failuresOf(`${output}\n1 tests failed:\n(fail) a > two [2.00ms]\n`)).toEqual(failures);
  expect(failuresOf("(pass) all [1.00ms]\n")).toEqual([]);
});

test("a run that broke off is not whole", () => {
  expect(isWholeRun("(fail) a > two [2.00ms]\n 1 fail\nRan 2 tests across 1 file. [3.00ms]\n")).toBe(true);
  expect(isWholeRun("(fail) a > two [2.00ms]\nKilled\n")).toBe(false);
});

test("the names of failed tests are those of the last run, where files ran again", () => {
  const first = "(fail) a > two [2.00ms]\n(fail) b > busy [1.00ms]\n1 tests failed:\n(fail) a > two [2.00ms]\n";
  expect(failedTests(first)).toEqual(["a > two", "b > busy"]);
  expect(failedTests(`${first}\n${onceMore} a.test.ts\n(fail) a > two [2.00ms]\n`)).toEqual(["a > two"]);
});

test("files that failed are those above whose failures their names stand, and those that could not be loaded", () => {
  const output = [
    ...["test/a.test.ts:", "(pass) one [1.00ms]", "test/b.test.ts:", "error: expected 1", "(fail) two [2.00ms]"],
    ...["(fail) three", "test/c.test.ts:", "# Unhandled error between tests", "test/d.test.ts:", "(pass) four"],
    ...["2 tests failed:", "(fail) two [2.00ms]", "(fail) three", "Ran 4 tests across 4 files. [84.00ms]"],
  ].join("\n");
  expect(failedFiles(output)).toEqual({ files: ["test/b.test.ts", "test/c.test.ts"], failures: 3 });
  expect(failedFiles("error: no tests\n")).toEqual({ files: [], failures: 0 });
  expect([lastFile(output), lastFile("error: no tests\n")]).toEqual(["test/d.test.ts", undefined]);
});

describe("a program that a script runs", () => {
  test("hands back its exit code and what it said", async () => {
    const outcome = await command(["sh", "-c", "echo out; echo err >&2; exit 7"], { limit_ms: 5000, quiet: true });
    expect(outcome).toMatchObject({ code: 7, stdout: "out\n" });
    expect(outcome.output).toContain("err\n");
  });

  test.each([
    ["is ended at its limit, with all that it started", "wait", 300, 124],
    ["leaves nothing behind when it ends by itself", "", 5000, 0],
  ])("%s", async (_, then, limit_ms, code) => {
    const words = ["sh", "-c", `sleep 60 >/dev/null 2>&1 & echo $!; ${then}`];
    const outcome = await command(words, { limit_ms, quiet: true });
    expect(outcome.code).toBe(code);
    await gone(Number(outcome.stdout));
  });

  test("that is not there is an exit code, and says so", async () => {
    const outcome = await command(["/no/such/program"], { limit_ms: 5000, quiet: true });
    expect(outcome.code).toBe(127);
    expect(outcome.output).toContain("ENOENT");
  });
});
