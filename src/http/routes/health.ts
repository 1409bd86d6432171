/** Probes. They never call a model, need no key, and replace no authenticated request test. */
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";
import { metricsContentType } from "../metrics.ts";

/** The longest a probe waits for one check, and how long its answer serves further probes. */
const check_ms = 2000;
const checks_cached_ms = 500;

export function healthRoutes(house: House): Route[] {
  const readiness = cachedReadiness(house);
  return [
    { path: "/livez", methods: { GET: () => json(200, { status: "ok" }) }, faultBody: encodeFault },
    {
      path: "/readyz",
      methods: {
        async GET(call) {
          const results = await readiness();
          const failing = results.filter((result) => result.problem && result.severity === "required");
          const verbose = new URL(call.request.url).searchParams.has("verbose");
          const shown = verbose ? results : failing;
          const body = {
            status: failing.length === 0 ? "ready" : "not_ready",
            checks: Object.fromEntries(shown.map(({ name, severity, problem }) => [name, verdict(severity, problem)])),
          };
          return json(failing.length === 0 ? 200 : 503, body, failing.length === 0 ? {} : { "retry-after": "1" });
        },
      },
      faultBody: encodeFault,
    },
    // Claude Code asks these two for a sign of life, without a key.
    { path: "/", methods: { GET: () => json(200, { status: "ok" }) }, faultBody: encodeFault },
    { path: "/api/hello", methods: { GET: () => json(200, { status: "ok" }) }, faultBody: encodeFault },
  ];
}

export function metricsRoute(house: House): Route {
  return {
    path: "/metrics",
    methods: {
      GET: async () =>
        new Response(await house.metrics.render(), {
          headers: { "content-type": metricsContentType, "cache-control": "no-store" },
        }),
    },
    faultBody: encodeFault,
  };
}

interface CheckResult {
  name: string;
  severity: "required" | "warning";
  problem: string | null;
}

function verdict(severity: CheckResult["severity"], problem: string | null): string {
  if (problem === null) return "ok";
  return severity === "warning" ? `warning: ${problem}` : problem;
}

function cachedReadiness(house: House): () => Promise<CheckResult[]> {
  let answer: { atMs: number; results: Promise<CheckResult[]> } | null = null;
  return async () => {
    const now = performance.now();
    if (!answer || now - answer.atMs > checks_cached_ms) answer = { atMs: now, results: runChecks(house) };
    const results = await answer.results;
    const draining = house.lifecycle.draining ? "the service is draining" : null;
    return [...results, { name: "draining", severity: "required", problem: draining }];
  };
}

function runChecks(house: House): Promise<CheckResult[]> {
  return Promise.all(
    house.checks.map(async ({ name, severity, run }) => {
      const late = new Promise<string>((resolve) =>
        setTimeout(() => resolve(`no answer within ${check_ms} ms`), check_ms).unref(),
      );
      const problem = await Promise.race([run().catch(() => "the check failed"), late]);
      return { name, severity, problem };
    }),
  );
}
