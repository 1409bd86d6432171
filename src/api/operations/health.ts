/** Probes. They never call a model, need no key, and are no substitute for an authenticated request. */
import Type from "typebox";
import { json } from "../../http/json.ts";
import type { Dependencies } from "../dependencies.ts";
import { type Content, type Operation, operation } from "../operation.ts";
import { type CheckResult, isFailing } from "../readiness.ts";
import { Liveness, Readiness } from "../shapes.ts";
import { jsonType } from "./examples.ts";

const alive: Record<string, Content> = { [jsonType]: { schema: Liveness, example: { status: "ok" } } };

const probe = (operationId: string, path: string, summary: string, description: string) =>
  operation({
    operationId,
    method: "get",
    path,
    tag: "Health",
    summary,
    description,
    scope: null,
    success: { description: "The process is up.", headers: [], content: alive },
    faults: [],
    otherFaults: false,
    examples: [
      { name: operationId, summary, needs: [], request: () => ({ path }), status: 200, contentType: jsonType },
    ],
    handle: () => json(200, { status: "ok" }),
  });

export const liveness = probe(
  "getLiveness",
  "/livez",
  "Is the process up?",
  "Reports that the process is up. Checks no dependency.",
);

const clientProbe = "Some clients check here, without a key, that the server is up before their first request.";
export const rootProbe = probe("probeRoot", "/", "Client probe", clientProbe);
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
    description: "Requests can be admitted.",
    headers: [],
    content: { [jsonType]: { schema: Readiness, example: { status: "ready", checks: {} } } },
    also: {
      503: {
        description: "Requests cannot be admitted; `checks` says why.",
        headers: ["retry-after"],
        content: {
          [jsonType]: {
            schema: Readiness,
            example: { status: "not_ready", checks: { database: "no answer within 2000 ms" } },
          },
        },
      },
    },
  },
  faults: [],
  otherFaults: false,
  examples: [
    {
      name: "ready",
      summary: "What fails",
      needs: [],
      request: () => ({ path: "/readyz" }),
      status: 200,
      contentType: jsonType,
    },
    {
      name: "verbose",
      summary: "Every check",
      needs: [],
      request: () => ({ path: "/readyz?verbose" }),
      status: 200,
      contentType: jsonType,
    },
  ],
  handle: async (dependencies, _call, { query }) => told(dependencies, query.verbose !== undefined, {}),
});

/** The same with the routes, under their names in the configuration, which clients never get. */
export const operatorReadiness: Operation = {
  ...readiness,
  handle: async (dependencies, _call, { query }) => {
    const isVerbose = query.verbose !== undefined;
    return told(dependencies, isVerbose, isVerbose ? { routes: await dependencies.routes() } : {});
  },
};

function told(dependencies: Dependencies, isVerbose: boolean, more: object): Response {
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

function verdict({ severity, problem }: CheckResult): string {
  if (problem === null) return "ok";
  return severity === "warning" ? `warning: ${problem}` : problem;
}
