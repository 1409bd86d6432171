// Finds the executable to measure, and describes the machine and the versions for a result.

import { cpus, loadavg, release, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { command } from "../../scripts/command.ts";
import { pins } from "./process.ts";

const build_ms = 5 * 60_000;
const root = join(import.meta.dir, "../..");

/** The path of the executable that TEST_SLUICE names, or of one that is built from this checkout. */
export async function executable(): Promise<string> {
  if (process.env.TEST_SLUICE) return resolve(process.env.TEST_SLUICE);
  const words = [process.execPath, "scripts/build.ts"];
  const { code, output } = await command(words, { folder: root, limit_ms: build_ms, quiet: true });
  if (code !== 0) throw new Error(output);
  return join(root, "dist/sluice");
}

/** The path of the older executable that TEST_SLUICE_BEFORE names; null if it is not set. */
export function beforeHere(): string | null {
  const { TEST_SLUICE_BEFORE: before } = process.env;
  return before ? resolve(before) : null;
}

export interface Versions {
  sluice: string;
  /** Whether the checkout's files differ from its commit. */
  isChanged: boolean;
  bun: string;
  [other: string]: string | boolean;
}

export async function versionsOf(program: string, others: Record<string, string>): Promise<Versions> {
  const said = async (...words: string[]) =>
    (await command(words, { folder: root, limit_ms: 10_000, quiet: true })).output.trim();
  const changes = process.env.TEST_SLUICE
    ? ""
    : await said("git", "status", "--porcelain", "src", "db", "package.json");
  return { sluice: await said(program, "--version"), isChanged: changes !== "", bun: Bun.version, ...others };
}

export interface Machine {
  cores: number;
  processor: string;
  memory_gb: number;
  kernel: string;
  /** Whether the measured program had a core to itself. */
  isPinned: boolean;
  /** The number of busy cores before the bench started anything. */
  busyCores_before: number;
  load_after: number;
}

export function machineOf(busyCores_before: number): Machine {
  const round = (value: number) => Number(value.toFixed(2));
  return {
    ...{ cores: cpus().length, processor: cpus()[0]?.model.trim() ?? "", kernel: release() },
    ...{ memory_gb: round(totalmem() / 1e9), isPinned: pins, busyCores_before: round(busyCores_before) },
    load_after: round(loadavg()[0]!),
  };
}
