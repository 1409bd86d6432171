// Preloaded into a node: shifts its wall clock, while it runs, by the number of milliseconds that a file contains.

import { readFileSync } from "node:fs";

const file = process.env.FAULTS_CLOCK!;
const Right = Date;
let off_ms = 0;

class Wrong extends Right {
  constructor(...parts: unknown[]) {
    // biome-ignore lint/suspicious/noExplicitAny: whatever a date is made of
    super(...((parts.length > 0 ? parts : [Wrong.now()]) as [any]));
  }
  static override now(): number {
    return Right.now() + off_ms;
  }
}

globalThis.Date = Wrong as DateConstructor;
setInterval(() => {
  try {
    off_ms = Number(readFileSync(file, "utf8"));
  } catch {
    off_ms = 0;
  }
}, 50).unref();
