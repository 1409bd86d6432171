/** The conditions of exact admission, as checks for /readyz. */
import { schemaOf, unfitting } from "../../db/migrate.ts";
import type { ReadinessCheck } from "../api/readiness.ts";
import type { Reloadable } from "../config/reload.ts";
import { whyNoAdmission } from "../postgres/admits.ts";
import { answeredWithin, type Database } from "../postgres/database.ts";
import type { RedisConnection } from "../redis/connection.ts";
import { modelsWithoutRoute, type RouteView } from "../routing/view.ts";

const answer_ms = 1500;
/**
 * The time that a request waits for its grant by default. All nodes ask one database: if it is slow for two
 * seconds, a balancer that took them all out would refuse what they would have answered.
 */
const admission_ms = 3000;
const every_ms = 1000;
/** The embedded database belongs to this process alone: it fails as a whole, and the thread is wanted for requests. */
const embedded_every_ms = 5000;
const schema_every_ms = 5000;

export function readinessChecks(
  database: Database,
  redis: RedisConnection | null,
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
  if (redis) checks.push(redisCheck(redis));
  return checks;
}

/** Somebody else may migrate a server's database while this node runs. One that does not answer in time has changed nothing. */
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
        // Whether it takes admissions is another check.
      }
      return last;
    },
  };
}

function redisCheck(redis: RedisConnection): ReadinessCheck {
  return {
    name: "redis",
    severity: "warning",
    every_ms,
    async run() {
      try {
        await redis.ping(answer_ms);
        return null;
      } catch {
        return "Redis does not answer";
      }
    },
  };
}

/** A warning: such a model's routes are all asked none the less, and no other node would have better ones. */
export function routesCheck(routes: () => RouteView[]): ReadinessCheck {
  return {
    name: "routes",
    severity: "warning",
    every_ms,
    // Over every route, which is too much for each probe.
    async run() {
      const models = modelsWithoutRoute(routes());
      if (models.length === 0) return null;
      const named = models.slice(0, named_max).join(", ");
      return `no healthy route: ${named}${models.length > named_max ? ` and ${models.length - named_max} more` : ""}`;
    },
  };
}

const named_max = 20;
