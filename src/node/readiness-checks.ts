/** The checks of /readyz: the conditions under which requests can be admitted. */
import { schemaOf, unfitting } from "../../db/migrate.ts";
import { administratorsProblem } from "../admin/store/administrators.ts";
import { ratesInShares } from "../admin/store/rates-in-shares.ts";
import type { Reloadable } from "../config/reload.ts";
import type { Log } from "../core/http/log.ts";
import type { RouteView } from "../core/routing/view.ts";
import type { FleetReports } from "../core/store/fleet.ts";
import { modelsWithoutRoute } from "../features/telemetry/routes.ts";
import type { ReadinessCheck } from "../features/upkeep/readiness.ts";
import { administratorsOutlook } from "../stores/postgres/administrators.ts";
import { whyNoAdmission } from "../stores/postgres/admits.ts";
import { answeredWithin, type Database } from "../stores/postgres/database.ts";
import type { RedisConnection } from "../stores/redis/connection.ts";

const answer_ms = 1500;
/**
 * The usual time that a request waits for its grant. A database that answers after two seconds is no problem yet. All
 * nodes use the same database: a balancer that removed all nodes would refuse requests that they would have answered.
 */
const admission_ms = 3000;
const every_ms = 1000;
/**
 * How often the embedded database is checked. It belongs to this process alone and fails as a whole, and requests need
 * its thread.
 */
const embedded_every_ms = 5000;
const schema_every_ms = 5000;
const administrators_every_ms = 5000;
const day_ms = 86_400_000;

export function readinessChecks(
  database: Database,
  { redis, fleet }: { redis: Pick<RedisConnection, "ping"> | null; fleet: Pick<FleetReports, "processes"> },
  configuration: Reloadable,
): ReadinessCheck[] {
  const isEmbedded = database.kind === "pglite";
  const checks: ReadinessCheck[] = [
    {
      name: "database",
      severity: "required",
      every_ms: isEmbedded ? embedded_every_ms : every_ms,
      run: () => whyNoAdmission(database, admission_ms),
    },
    {
      name: "catalog",
      severity: "required",
      every_ms,
      read: () => (configuration.current().catalog.models.size > 0 ? null : "the catalog has no models"),
    },
  ];
  if (!isEmbedded) checks.push(schemaCheck(database));
  if (!isEmbedded || redis) checks.push(redisCheck(redis, fleet.processes));
  return checks;
}

/**
 * Checks the schema, because a server's database may be migrated while this node runs. If the database does not answer
 * in time, the last result stays.
 */
function schemaCheck(database: Database): ReadinessCheck {
  let last: string | null = "the database does not say which schema it has";
  return {
    name: "schema",
    severity: "required",
    every_ms: schema_every_ms,
    async run() {
      try {
        last = unfitting(await answeredWithin(schemaOf(database), answer_ms, "the database"));
      } catch {
        // Another check reports whether the database accepts admissions.
      }
      return last;
    },
  };
}

/**
 * Checks Redis. A failure is only a warning: without Redis, each process counts a share of the limits per minute
 * (docs/design/usage.md, Sliding limits).
 */
function redisCheck(redis: Pick<RedisConnection, "ping"> | null, processes: () => number): ReadinessCheck {
  return {
    name: "redis",
    severity: "warning",
    every_ms,
    async run() {
      const shares = ratesInShares(processes());
      if (redis === null) return shares && `there is none (REDIS_URL): ${shares}`;
      try {
        await redis.ping(answer_ms);
        return null;
      } catch {
        return `Redis does not answer${shares ? `: ${shares}` : ""}`;
      }
    },
  };
}

/**
 * Checks whether anybody can administer the service, now and soon. A failure is only a warning, which is also logged,
 * immediately and then daily, since few people read a probe. `now_ms`: a monotonic clock.
 */
export function administratorsCheck(database: Database, log: Pick<Log, "event">, now_ms: () => number): ReadinessCheck {
  let logged = { problem: null as string | null, at_ms: 0 };
  return {
    name: "administrators",
    severity: "warning",
    every_ms: administrators_every_ms,
    async run() {
      const problem = administratorsProblem(await administratorsOutlook(database));
      if (problem !== null && (problem !== logged.problem || now_ms() - logged.at_ms >= day_ms)) {
        logged = { problem, at_ms: now_ms() };
        log.event("warn", "notice", { notice: problem });
      }
      return problem;
    },
  };
}

/**
 * Checks for models without a healthy route. A failure is only a warning: all routes of such a model are still tried,
 * and other nodes have no better ones.
 */
export function routesCheck(routes: () => RouteView[]): ReadinessCheck {
  return {
    name: "routes",
    severity: "warning",
    every_ms,
    // The check runs at intervals, because reading every route would take too long for each probe.
    async run() {
      const models = modelsWithoutRoute(routes());
      if (models.length === 0) return null;
      const named = models.slice(0, named_max).join(", ");
      return `no healthy route: ${named}${models.length > named_max ? ` and ${models.length - named_max} more` : ""}`;
    },
  };
}

const named_max = 20;
