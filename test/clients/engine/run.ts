// Runs the checks of llama.cpp's own server behind the service: an engine that this project did not write.

import { onlyPinned, ranChecks } from "../edition.ts";
import { llamaVersion } from "../engines/engines.ts";
import { randomModel } from "./llama.ts";

// Generous limits for a busy machine: at the limit, everything that the checks started is killed, including the engine.
const times = { limit_ms: 10 * 60_000, test_ms: 60_000 };

export const engineSuite = onlyPinned(`llama.cpp ${llamaVersion}`, async () =>
  ranChecks(["engine/llama.checks.ts"], { ...times, environment: { LLAMA_MODEL: await randomModel() } }),
);
