/** Counts how requests are changed for engines, and logs each kind of change once an hour for each route. */

import type { Log } from "../core/http/log.ts";
import type { Loss } from "../core/protocol/codec.ts";
import type { LostField } from "../core/usage/record.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import { seldom } from "./seldom.ts";

const silence_ms = 3_600_000;

const meanings: Record<Loss, string> = {
  thoughts: "replayed thoughts were left out: the engine's dialect has no field for them",
  carried: "an opaque value of an earlier answer was left out: another dialect or model made it",
  order: "calls were moved behind the text of their turn",
  surrogates: "half a character, alone, became U+FFFD",
  stripped: "fields that the engine refuses were left out",
  refused: "the engine refused a field that only helps, and was asked again without it",
};

export function lossLog(
  { metrics, log }: { metrics: Pick<Metrics, "partLost">; log: Pick<Log, "event"> },
  now_ms: () => number,
): (lost: LostField) => void {
  const isNew = seldom(silence_ms, { now_ms });
  return ({ model, route, loss }) => {
    const { name: upstream, address: replica } = route.upstream;
    metrics.partLost(upstream, loss);
    if (!isNew(`${upstream} ${route.model} ${loss}`)) return;
    log.event("warn", "request_part_lost", {
      upstream,
      ...(replica && { replica }),
      model,
      loss,
      meaning: meanings[loss],
    });
  };
}
