// Starts one rig (nodes, stores and engines) for all the tests of a file.

import { afterAll, beforeAll } from "bun:test";
import { type Rig, type RigOptions, startRig } from "./rig.ts";

/**
 * Returns an object that becomes the rig when the file's tests start; it has no members before that. The rig stops
 * after the tests.
 */
export function rigForFile(options: RigOptions): Rig {
  const rig = {} as Rig;
  beforeAll(async () => void Object.assign(rig, await startRig(options)), 120_000);
  afterAll(async () => void (await rig.stop?.()), 60_000);
  return rig;
}
