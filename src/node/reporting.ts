/**
 * Reports this process to the fleet (docs/operating.md, The fleet): every two seconds, and within a quarter of a second
 * after readiness, configuration or drained engines have changed. A report that fails is not repeated, since another
 * follows.
 */
import { hostname } from "node:os";
import type { Reloadable } from "../config/reload.ts";
import type { Lifecycle } from "../core/http/frame.ts";
import { isFailing } from "../core/operations/health.ts";
import { engines_max, type FleetReports, type NodeIdentity, type ProcessReport } from "../core/store/fleet.ts";
import { within } from "../core/time/cancellation.ts";
import { alignedClock, type Clock, repeating } from "../core/time/clock.ts";
import { flow, readingOf } from "../features/telemetry/flow.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import type { Readiness } from "../features/upkeep/readiness.ts";
import type { Member } from "../features/workers/member.ts";
import type { Admitting } from "./admitting.ts";
import type { Engines } from "./engines.ts";
import { disposable } from "./foundation.ts";

const look_ms = 200;
const report_ms = 2_000;
/** A report older than this belongs to a process that has ended, and is deleted. */
const forgotten_ms = 5 * 60_000;
const forget_ms = 60_000;
const leave_ms = 1_000;
const problems_max = 8;
const problem_chars_max = 200;

export function newIdentity(): NodeIdentity {
  return { id: Bun.randomUUIDv7(), startedAt: new Date() };
}

export interface Reported {
  identity: NodeIdentity;
  member: Pick<Member, "number" | "workers"> | null;
  version: string;
  url: string;
  certificateExpiresAt(): Date | null;
  configuration: Pick<Reloadable, "hash">;
  readiness: Pick<Readiness, "results">;
  lifecycle: Pick<Lifecycle, "draining">;
  engines: Pick<Engines, "seen" | "drained"> & { queues: Pick<Engines["queues"], "waiting"> };
  admission: Pick<Admitting["admission"], "holds">;
  metrics: Pick<Metrics, "sum" | "buckets">;
}

interface ReportingDependencies extends Reported {
  store: Omit<FleetReports, "processes">;
  /** Called once for each outage of the store, however long it lasts. */
  failed(cause: unknown): void;
  clock?: Clock;
}

export function startReporting(parts: ReportingDependencies): AsyncDisposable {
  const { store, identity, member, failed, clock = alignedClock() } = parts;
  const ending = new AsyncDisposableStack();
  const read = reporter(parts, clock);
  let reported = { state: "", at_ms: Number.NEGATIVE_INFINITY };
  let forgot_ms = Number.NEGATIVE_INFINITY;
  let isAway = false;

  async function look(): Promise<void> {
    const [state, now_ms] = [stateOf(parts), clock.now_ms()];
    if (state === reported.state && now_ms - reported.at_ms < report_ms) return;
    reported = { state, at_ms: now_ms };
    try {
      await store.report(read());
      isAway = false;
      if (now_ms - forgot_ms < forget_ms) return;
      forgot_ms = now_ms;
      await store.forget(forgotten_ms);
    } catch (cause) {
      if (!isAway) failed(cause);
      isAway = true;
    }
  }

  const looks = repeating(look, { first: 0, every: look_ms }, clock);
  ending.defer(() => within(store.leave(identity, member?.number ?? 0), leave_ms, "the database").catch(failed));
  ending.defer(() => looks.stop());
  return disposable({}, ending);
}

/** A text that changes whenever something changes that operators want to see without delay. */
function stateOf({ configuration, readiness, engines: { drained } }: Reported): string {
  const failing = readiness.results().filter(isFailing);
  return [configuration.hash(), drained.identity, ...failing.map(({ name }) => name)].join("\n\n");
}

function reporter(parts: Reported, clock: Pick<Clock, "now_ms">): () => ProcessReport {
  const { identity, member, version, url, configuration, readiness, lifecycle, engines, admission, metrics } = parts;
  const { protocol, port } = new URL(url);
  const name = `${hostname()}:${port || (protocol === "https:" ? 443 : 80)}`;
  const flowing = flow();
  flowing.add(readingOf(metrics, clock.now_ms()));
  return () => {
    const seen = engines.seen();
    const failing = readiness.results().filter((one) => isFailing(one) && one.name !== "draining");
    return {
      node: identity,
      worker: member?.number ?? 0,
      name,
      version,
      configuration: configuration.hash(),
      workersWanted: member?.workers ?? 1,
      isDraining: lifecycle.draining,
      certificateExpiresAt: parts.certificateExpiresAt()?.toISOString() ?? null,
      problems: failing
        .slice(0, problems_max)
        .map(({ name, problem }) => `${name}: ${problem}`.slice(0, problem_chars_max)),
      figures: {
        ...flowing.add(readingOf(metrics, clock.now_ms())),
        running: admission.holds(),
        waiting: engines.queues.waiting(),
      },
      engines: seen.slice(0, engines_max),
      enginesLeftOut: Math.max(0, seen.length - engines_max),
    };
  };
}
