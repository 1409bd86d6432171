/** What must hold for exact admission, checked within bounds. Its answer serves the probes of half a second. */

/** The longest a probe waits for one check, and how long its answer serves further probes. */
const check_ms = 2000;
const checks_cached_ms = 500;

export interface ReadinessCheck {
  name: string;
  /** A warning shows in /readyz?verbose and never makes it fail. */
  severity: "required" | "warning";
  /** Null when it holds, else a sentence without addresses or secrets. */
  run(): Promise<string | null>;
}

export interface CheckResult {
  name: string;
  severity: ReadinessCheck["severity"];
  problem: string | null;
}

export type Readiness = () => Promise<CheckResult[]>;

export function readinessOf(checks: readonly ReadinessCheck[], lifecycle: { readonly draining: boolean }): Readiness {
  let answer: { at_ms: number; results: Promise<CheckResult[]> } | null = null;
  return async () => {
    const now = performance.now();
    if (!answer || now - answer.at_ms > checks_cached_ms) answer = { at_ms: now, results: runChecks(checks) };
    const results = await answer.results;
    const draining = lifecycle.draining ? "the service is draining" : null;
    return [...results, { name: "draining", severity: "required", problem: draining }];
  };
}

function runChecks(checks: readonly ReadinessCheck[]): Promise<CheckResult[]> {
  return Promise.all(
    checks.map(async ({ name, severity, run }) => {
      const late = new Promise<string>((resolve) =>
        setTimeout(() => resolve(`no answer within ${check_ms} ms`), check_ms).unref(),
      );
      const problem = await Promise.race([run().catch(() => "the check failed"), late]);
      return { name, severity, problem };
    }),
  );
}
