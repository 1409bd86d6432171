// Preloaded into the attacked service to monitor its event loop. Whenever the loop stops for a while, this writes a
// line to the file that ATTACK_WATCH names: how long it stopped, and how much of that was CPU time of the thread.

import { appendFileSync } from "node:fs";

const beat_ms = 2;
/** Stops of the event loop that are shorter than this are not recorded. */
const told_ms = 4;

const file = process.env.ATTACK_WATCH;
if (file && process.argv.includes("serve")) watch(file);

function watch(path: string): void {
  let last_ms = performance.now();
  let cpu_us = threadCpu_us();
  const beat = () => {
    const now_ms = performance.now();
    const used_us = threadCpu_us();
    const wall_ms = now_ms - last_ms - beat_ms;
    if (wall_ms >= told_ms) {
      const stop: Stop = { at_ms: Date.now(), wall_ms, cpu_ms: (used_us - cpu_us) / 1000 };
      appendFileSync(path, `${JSON.stringify(stop)}\n`);
    }
    last_ms = performance.now();
    cpu_us = threadCpu_us();
    setTimeout(beat, beat_ms).unref();
  };
  beat();
}

export interface Stop {
  /** The time at which the stop ended. */
  at_ms: number;
  wall_ms: number;
  cpu_ms: number;
}

function threadCpu_us(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
