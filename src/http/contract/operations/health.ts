/** Probes in the contract. They need no key and replace no authenticated request. */
import Type from "typebox";
import type { Content, Operation } from "../operation.ts";
import { Liveness, Readiness } from "../shapes.ts";

const json = "application/json";
const alive: Record<string, Content> = { [json]: { schema: Liveness, example: { status: "ok" } } };

const signOfLife = (operationId: string, path: string, summary: string, description: string): Operation => ({
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
  examples: [{ name: operationId, summary, needs: [], request: () => ({ path }), status: 200, contentType: json }],
});

export const liveness = signOfLife(
  "getLiveness",
  "/livez",
  "Is the process up?",
  "Reports that the process is up. Checks no dependency.",
);

const clientProbe = "Some clients ask here for a sign of life, without a key, before their first request.";
export const rootProbe = signOfLife("probeRoot", "/", "Client probe", clientProbe);
export const helloProbe = signOfLife("probeHello", "/api/hello", "Client probe", clientProbe);

export const readiness: Operation = {
  operationId: "getReadiness",
  method: "get",
  path: "/readyz",
  tag: "Health",
  summary: "Can the service admit requests?",
  description:
    "Whether requests can be admitted exactly at this moment. What only degrades the service does not fail it.",
  scope: null,
  parameters: [
    {
      name: "verbose",
      in: "query",
      required: false,
      mayBeEmpty: true,
      description: "When it is present, every check is listed, not only those that fail.",
      schema: Type.String(),
    },
  ],
  success: {
    description: "Requests are admitted.",
    headers: [],
    content: { [json]: { schema: Readiness, example: { status: "ready", checks: {} } } },
    also: {
      503: {
        description: "Requests are not admitted; `checks` says why.",
        headers: ["retry-after"],
        content: {
          [json]: {
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
      contentType: json,
    },
    {
      name: "verbose",
      summary: "Every check",
      needs: [],
      request: () => ({ path: "/readyz?verbose" }),
      status: 200,
      contentType: json,
    },
  ],
};
