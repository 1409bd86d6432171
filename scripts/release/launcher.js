#!/usr/bin/env node
// Starts the executable for this platform, which npm has installed as a package of its own, because install scripts may
// be disabled. Passes signals on, and exits as the executable did.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

const isWindows = process.platform === "win32";

function packageName() {
  const system = isWindows ? "windows" : process.platform;
  return `sluice-${system}-${process.arch}${isMusl() ? "-musl" : ""}`;
}

/** Node's report has the version of glibc; on musl there is none. */
function isMusl() {
  return process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime === undefined;
}

function executableOf(name) {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    const path = join(folder, "bin", isWindows ? "sluice.exe" : "sluice");
    return existsSync(path) ? path : null;
  } catch {
    return null;
  }
}

function fail(message) {
  process.stderr.write(`sluice: ${message}\n`);
  process.exit(1);
}

const name = packageName();
const path = executableOf(name);
if (path === null) {
  fail(
    `the package ${name} is not installed. Either there is no Sluice for this machine, or optional dependencies were left out: install sluice again without --omit=optional.`,
  );
}

// On a terminal, the executable gets these signals directly from the terminal. It would take a second one as a request
// to stop without waiting.
const fromTerminal = ["SIGHUP", "SIGINT", "SIGQUIT"];
// The handlers are installed before the executable starts, because an early signal would otherwise end only this
// process.
for (const signal of isWindows ? ["SIGINT", "SIGTERM"] : [...fromTerminal, "SIGTERM", "SIGUSR2"]) {
  process.on(signal, () => {
    if (!(process.stdin.isTTY && fromTerminal.includes(signal))) child.kill(signal);
  });
}

const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (failure) => fail(`${path} could not be started: ${failure.message}`));

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // If the signal does not end this process, it exits with the code of a signal, so that this does not look like
  // success.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 1_000);
});
