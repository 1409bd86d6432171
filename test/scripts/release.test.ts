/**
 * The parts of a release: the launcher of the npm package, formats of executables, the Homebrew formula, and the
 * release notes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formulaOf } from "../../scripts/release/homebrew.ts";
import { notesOf } from "../../scripts/release/notes.ts";
import { formatOf, targets } from "../../scripts/release/targets.ts";
import { until } from "../harness/until.ts";

const node = Bun.which("node");
const reason = node === null ? " (skipped: there is no node here)" : "";
const system = process.platform === "win32" ? "windows" : process.platform;
const isMusl = process.platform === "linux" && !(process.report.getReport() as Report).header.glibcVersionRuntime;
const fitting = `sluice-${system}-${process.arch}${isMusl ? "-musl" : ""}`;

interface Report {
  header: { glibcVersionRuntime?: string };
}

describe(`the launcher of the npm package${reason}`, () => {
  let folder: string;
  let launcher: string;
  const executable = (text: string) => {
    const path = join(folder, "node_modules", fitting, "bin", "sluice");
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  };
  const launch = (...words: string[]) => Bun.spawn([node!, launcher, ...words], { stdout: "pipe", stderr: "pipe" });

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sluice-release-"));
    const own = join(folder, "node_modules", "sluice");
    mkdirSync(own, { recursive: true });
    mkdirSync(join(folder, "node_modules", fitting, "bin"), { recursive: true });
    writeFileSync(join(folder, "node_modules", fitting, "package.json"), "{}");
    writeFileSync(join(own, "package.json"), '{"type":"module"}');
    launcher = join(own, "launcher.js");
    copyFileSync("scripts/release/launcher.js", launcher);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.skipIf(node === null)("passes arguments, output and the exit code on", async () => {
    executable('echo "$1,$2"; exit 7');
    const child = launch("key", "two words");
    expect(await new Response(child.stdout).text()).toBe("key,two words\n");
    expect(await child.exited).toBe(7);
  });

  test.skipIf(node === null)("passes a signal on, and waits for the program's own end", async () => {
    executable('trap "echo drained; exit 3" TERM; echo ready; while :; do sleep 0.05; done');
    const child = launch("serve");
    let out = "";
    const reading = (async () => {
      for await (const bytes of child.stdout) out += new TextDecoder().decode(bytes);
    })();
    await until(() => out.includes("ready"), 10_000, "the program to start");
    child.kill("SIGTERM");
    expect(await child.exited).toBe(3);
    await reading;
    expect(out).toBe("ready\ndrained\n");
  });

  test.skipIf(node === null)("ends by the signal that ended the program", async () => {
    executable("kill -KILL $$");
    const child = launch("serve");
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
  });

  test.skipIf(node === null)("says which package is missing", async () => {
    rmSync(join(folder, "node_modules", fitting), { recursive: true });
    const child = launch("serve");
    expect(await child.exited).toBe(1);
    expect(await new Response(child.stderr).text()).toContain(`the package ${fitting} is not installed`);
  });
});

test("an executable is known by its head, and what is none is refused", async () => {
  const head = new Uint8Array(await Bun.file(process.execPath).slice(0, 4096).arrayBuffer());
  const own = targets.find(({ os, cpu }) => os === process.platform && cpu === process.arch)!;
  expect(formatOf(head)).toBe(own.format);
  const elf = (machine: number) => {
    const bytes = new Uint8Array(64);
    bytes.set([0x7f, 0x45, 0x4c, 0x46]);
    bytes[18] = machine;
    return formatOf(bytes);
  };
  expect([elf(0x3e), elf(0xb7), elf(0x28)]).toEqual(["ELF x86-64", "ELF AArch64", null]);
  expect(formatOf(new Uint8Array(0))).toBeNull();
  expect(formatOf(new TextEncoder().encode("#!/bin/sh\n".repeat(10)))).toBeNull();
});

test("the formula has the archive and the checksum of each machine that Homebrew knows", () => {
  const archives = targets.map((target) => ({ target, name: `${target.name}.tar.gz`, sha256: `sum-${target.name}` }));
  const formula = formulaOf("1.2.3", "https://releases.example", archives);
  for (const name of ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"]) {
    expect(formula).toContain(`url "https://releases.example/${name}.tar.gz"\n      sha256 "sum-${name}"`);
  }
  expect(formula).not.toContain("musl");
  expect(formula).not.toContain("windows");
});

test("the notes of a release are the changelog's, of that version alone", () => {
  const changelog =
    "# Changelog\n\n## [Unreleased]\n\n- next\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- a\n\n## [0.1.0]\n\n- old\n";
  expect(notesOf(changelog, "0.2.0")).toBe("### Added\n\n- a");
  expect(() => notesOf(changelog, "0.2.1")).toThrow("says nothing of 0.2.1");
});
