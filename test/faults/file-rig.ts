// One rig for all the tests of a file.

import { afterAll, beforeAll } from "bun:test";
import { type Rig, type RigOptions, startRig } from "./rig.ts";

/** A rig that starts before the file's tests and stops after them. Before that it has no members. */
export function rigForFile(options: RigOptions): Rig {
  const rig = {} as Rig;
  beforeAll(async () => void Object.assign(rig, await startRig(options)), 120_000);
  afterAll(async () => void (await rig.stop?.()), 60_000);
  return rig;
}
