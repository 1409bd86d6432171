// Preloaded by `npm test -- --times`: records the CPU time of each test file (including that of its child processes
// that have ended), and its duration.

import { afterAll } from "bun:test";
import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { cpu_s } from "./cpu.ts";

const file = process.env.TEST_TIMES!;
const before_s = cpu_s();
const began_ms = performance.now();

afterAll(() => {
  const name = relative(process.cwd(), Bun.main);
  const took_s = (performance.now() - began_ms) / 1000;
  appendFileSync(file, `${JSON.stringify({ name, cpu_s: cpu_s() - before_s, took_s })}\n`);
});
