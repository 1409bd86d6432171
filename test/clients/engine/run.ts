// Runs the checks of llama.cpp's own server behind the service, driven by the openai SDK: an engine that this project did
// not write.

import { onlyPinned, ranChecks } from "../edition.ts";
import { llamaVersion } from "../engines/engines.ts";
import { randomModel } from "./llama.ts";

// If a check takes too long, everything that it started is ended, the engine too. So give it time on a busy machine.
const times = { limit_ms: 10 * 60_000, test_ms: 60_000 };

export const engineSuite = onlyPinned(`llama.cpp ${llamaVersion}`, async () =>
  ranChecks(["engine/llama.checks.ts"], { ...times, environment: { LLAMA_MODEL: await randomModel() } }),
);
