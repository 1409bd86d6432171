/**
 * Saves what was learned about models (how many bytes or deltas they have per token): reads it once at the start, and
 * writes it in the background. No request waits for it. While the store is away, changes wait, and the log gets one
 * line about this. A node that is killed loses one interval of learning.
 */

import type { Calibrations, CalibrationTable, InputRatio, OutputSums } from "../../core/store/calibration.ts";
import { within } from "../../core/time/cancellation.ts";
import { repeating } from "../../core/time/clock.ts";
import { type Kept, learned_max } from "../../core/usage/input-estimate.ts";

export interface CalibrationSaverSettings {
  write_ms: number;
  /** How long a start waits for the stored values. */
  recall_ms: number;
  stop_ms: number;
}

const calibrationSaverSettings: CalibrationSaverSettings = {
  write_ms: 30_000,
  recall_ms: 1_000,
  stop_ms: 3_000,
};

export function calibrationSaver(parts: {
  store: Calibrations;
  input: Kept<InputRatio>;
  output: Kept<OutputSums>;
  /** Called once for each outage of the store, however long it lasts. */
  failed: (cause: unknown) => void;
  settings?: Partial<CalibrationSaverSettings>;
}) {
  const { store, input, output } = parts;
  const settings = { ...calibrationSaverSettings, ...parts.settings };
  let isAway = false;
  const writes = repeating(write, { every: settings.write_ms });

  function failed(cause: unknown): void {
    if (!isAway) parts.failed(cause);
    isAway = true;
  }

  async function read(): Promise<void> {
    await Promise.all([readFrom(store.inputs, input), readFrom(store.outputs, output)]);
  }

  async function write(): Promise<void> {
    try {
      const some = await Promise.all([written(store.inputs, input), written(store.outputs, output)]);
      if (some.includes(true)) isAway = false;
    } catch (cause) {
      failed(cause);
    }
  }

  return {
    /** Reads the stored values. Never rejects, and takes a second at most. Values that arrive later are still used. */
    recall: () => within(read(), settings.recall_ms, "the store of calibrations").catch(failed),
    /** Writes the unsaved changes, for 3 s at most. Never rejects. */
    stop: () => within(writes.stop().then(write), settings.stop_ms, "the store of calibrations").catch(failed),
  };
}

async function readFrom<Known>(table: CalibrationTable<Known>, kept: Kept<Known>): Promise<void> {
  for (const [name, known] of await table.read(learned_max)) kept.recall(name, known);
}

/** Writes the changed entries of a table. Returns whether there were any. */
async function written<Known>(table: CalibrationTable<Known>, kept: Kept<Known>): Promise<boolean> {
  const changes = kept.changes();
  if (changes.size === 0) return false;
  try {
    await table.write(changes);
  } catch (cause) {
    kept.unwritten(changes.keys());
    throw cause;
  }
  return true;
}
