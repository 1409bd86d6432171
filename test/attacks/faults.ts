// Attacks from behind the service: an engine that reports a false usage, and a database that is down. The clients are
// honest.

import { until } from "../harness/until.ts";
import type { Attack, Target } from "./attack.ts";
import { mib } from "./body.ts";
import { chatWith, metricIn, metricsOf, probing, statusesOf } from "./talk.ts";

/**
 * The growth is large because the runtime collects garbage late: a thousand honest requests make the heap of a new
 * process grow as much.
 */
const bounds = () => ({ step_ms: 50, growth_bytes: 128 * mib });
/**
 * The most log lines for one event in ten seconds. Further events are only counted, in one line
 * (src/features/telemetry/flood.ts).
 */
const lines_max = 20;

/**
 * An engine with a high price that reports a billion tokens, in the same read as the end of its response, under a plan
 * without limits: the sum of the costs comes near 2^53.
 */
const lies: Attack = {
  name: "an engine that reports a billion tokens, 1,000 times",
  async run(target) {
    const answers = await statusesOf(1000, 50, () => chatWith(target, { model: target.lyingModel, stream: true }));
    const problems = answers.some((status) => status !== "200") ? ["not every request was answered"] : [];
    const held = async () => metricIn(await metricsOf(target), "usage_holds");
    await until(async () => (await held()) === 0, 10_000).catch(() => problems.push("nanos stayed held"));
    const rejected = metricIn(await metricsOf(target), "usage_reports_rejected_total");
    if (rejected < answers.length) problems.push(`${rejected} of ${answers.length} lies were counted`);
    return { bytes: 150 * answers.length, unpackedBytes: 0, answers, problems: [...problems, ...floods(target)] };
  },
  bounds,
};

const outage: Attack = {
  name: "a database that is gone, and 2,000 requests",
  node: { hasDatabase: true },
  async run(target) {
    const { database, model, url } = target;
    await database!.kill();
    const probe = probing(`${url}/readyz`, 50);
    const answers = await statusesOf(2000, 20, () => chatWith(target, { model, stream: true }));
    const { slowest_ms } = await probe.end();
    const problems = slowest_ms > 1000 ? [`/readyz took ${slowest_ms.toFixed(0)} ms`] : [];
    if (answers.some((status) => status !== "503")) problems.push("a request was not answered 503");
    await database!.start();
    const isBack = async () => (await chatWith(target, { model })).status === 200;
    await until(isBack, 30_000).catch(() => problems.push("it did not come back"));
    return { bytes: 150 * answers.length, unpackedBytes: 0, answers, problems: [...problems, ...floods(target)] };
  },
  bounds,
};

/**
 * The problem if the log is flooded. Each request has one line in the log; the lines for other events must not grow
 * with the number of requests.
 */
function floods({ log }: Target): string[] {
  const events = log().matchAll(/^\{"time":"(.{18}).*?"event":"((?!request")\w+)"/gm);
  const perTenSeconds = Map.groupBy(events, ([, time, event]) => `${event} at ${time}`);
  const most = Math.max(0, ...[...perTenSeconds.values()].map((lines) => lines.length));
  // Ten seconds may overlap two windows. Each window has `lines_max` lines, and one that counts the other events.
  return most > 2 * lines_max + 2 ? [`${most} lines of one event were logged in ten seconds`] : [];
}

export const faults: readonly Attack[] = [lies, outage];
