/** Makes the log of a serving process, on stderr. */

import type { Configuration } from "../config/configuration.ts";
import { engineNames } from "../config/engine-names.ts";
import type { Log } from "../core/http/log.ts";
import { probes } from "../core/operations/list.ts";
import { systemClock } from "../core/time/clock.ts";
import { logTo } from "../features/telemetry/log.ts";
import type { Member } from "../features/workers/member.ts";
import { metricsOperations } from "./operations.ts";

export function logOf(configuration: () => Configuration, member: Member | null): Log {
  return logTo({
    worker: member?.number,
    write: (text) => void process.stderr.write(text),
    clock: systemClock(),
    settings: () => configuration().log,
    probes: new Set([...probes, ...metricsOperations].map(({ path }) => path)),
    hidden: () => engineNames(configuration()),
  });
}
