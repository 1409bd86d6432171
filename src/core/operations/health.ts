/** Health probes. They call no model and need no key, and do not replace an authenticated request as a check. */
import Type from "typebox";
import { json } from "../http/json.ts";
import type { CheckResult, Dependencies } from "./dependencies.ts";
import { getExample } from "./examples.ts";
import { jsonSuccess, type Operation, operation } from "./operation.ts";
import { Liveness, Readiness } from "./shapes.ts";

const probe = (operationId: string, path: string, summary: string, description: string) =>
  operation({
    operationId,
    method: "get",
    path,
    tag: "Health",
    summary,
    description,
    scope: null,
    success: jsonSuccess("The process is up.", { schema: Liveness, example: { status: "ok" } }),
    faults: [],
    otherFaults: false,
    examples: [getExample(operationId, summary, path)],
    handle: () => json(200, { status: "ok" }),
  });

export const liveness = probe(
  "getLiveness",
  "/livez",
  "Is the process up?",
  "Reports that the process is up. Checks no dependency.",
);

const clientProbe = "Some clients check here, without a key, that the server is up before their first request.";
const rootWords = `${clientProbe} A browser gets a page for people.`;
export const rootProbe = probe("probeRoot", "/", "Client probe", rootWords);
export const helloProbe = probe("probeHello", "/api/hello", "Client probe", clientProbe);

const verbose = Type.Object({
  verbose: Type.Optional(
    Type.String({
      description: "If present, every check is listed, not only those that fail.",
      allowEmptyValue: true,
    }),
  ),
});

export const readiness = operation({
  operationId: "getReadiness",
  method: "get",
  path: "/readyz",
  tag: "Health",
  summary: "Can the service admit requests?",
  description:
    "Whether requests can be admitted with exact limits now. A problem that only degrades the service does not fail this check.",
  scope: null,
  query: verbose,
  success: {
    ...jsonSuccess("Requests can be admitted.", { schema: Readiness, example: { status: "ready", checks: {} } }),
    also: {
      503: jsonSuccess(
        "Requests cannot be admitted; `checks` says why.",
        {
          schema: Readiness,
          example: { status: "not_ready", checks: { database: "no answer within 2000 ms" } },
        },
        ["retry-after"],
      ),
    },
  },
  faults: [],
  otherFaults: false,
  examples: [getExample("ready", "What fails", "/readyz"), getExample("verbose", "Every check", "/readyz?verbose")],
  handle: async (dependencies, _call, { query }) => readinessAnswer(dependencies, query.verbose !== undefined, {}),
});

/**
 * Readiness with the routes, for operators. It has the names of engines in the configuration, which clients never get.
 */
export const operatorReadiness: Operation = {
  ...readiness,
  handle: async (dependencies, _call, { query }) => {
    const isVerbose = query.verbose !== undefined;
    return readinessAnswer(dependencies, isVerbose, isVerbose ? { routes: await dependencies.routes() } : {});
  },
};

export function readinessAnswer(
  dependencies: Pick<Dependencies, "readiness" | "configurationHash">,
  isVerbose: boolean,
  more: object,
): Response {
  const results = dependencies.readiness();
  const failing = results.filter(isFailing);
  const isReady = failing.length === 0;
  const body = {
    status: isReady ? "ready" : "not_ready",
    checks: Object.fromEntries((isVerbose ? results : failing).map((result) => [result.name, verdict(result)])),
    ...(isVerbose ? { configuration: dependencies.configurationHash() } : {}),
    ...more,
  };
  return json(isReady ? 200 : 503, body, isReady ? {} : { "retry-after": "1" });
}

export function isFailing({ severity, problem }: CheckResult): boolean {
  return severity === "required" && problem !== null;
}

function verdict({ severity, problem }: CheckResult): string {
  if (problem === null) return "ok";
  return severity === "warning" ? `warning: ${problem}` : problem;
}
