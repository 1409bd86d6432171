/** GET /openapi.json, for the catalog in force, and /docs, which shows it. Neither needs a key. */
import Type from "typebox";
import { getExample } from "../../core/operations/examples.ts";
import { jsonSuccess, jsonType, operation } from "../../core/operations/operation.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import type { OpenapiDependencies } from "./documentation.ts";
import { docsPath, docsScriptPath } from "./page.ts";

const common = { method: "get", tag: "Documentation", scope: null, faults: [], otherFaults: false } as const;

export const getContract = operation({
  ...common,
  operationId: "getContract",
  path: "/openapi.json",
  summary: "The contract",
  description:
    "This document, with the models of the current catalog. If this document and other documentation disagree, this document applies.",
  success: jsonSuccess("The contract", {
    schema: Type.Object({ openapi: Type.String() }, { additionalProperties: true }),
  }),
  examples: [getExample("getContract", "The contract", "/openapi.json")],
  handle: ({ documentation }: OpenapiDependencies) =>
    new Response(documentation.openapi(), { headers: { "content-type": jsonType, "cache-control": "no-cache" } }),
});

export const getDocs = operation({
  ...common,
  operationId: "getDocs",
  path: docsPath,
  summary: "The API reference",
  description: "A page that renders this document. It loads nothing from other hosts.",
  success: {
    description: "The API reference",
    headers: [],
    content: { "text/html": { schema: Type.String() } },
  },
  examples: [getExample("getDocs", "The API reference", docsPath, { contentType: "text/html" })],
  handle: ({ documentation }: OpenapiDependencies) => documentation.page(),
});

export const getDocsScript = unlisted({
  id: "getDocsScript",
  method: "get",
  path: docsScriptPath,
  type: "text/javascript",
  handle: ({ documentation }: OpenapiDependencies, call) => documentation.script(call.request.headers),
});
