/** GET /openapi.json, for the catalog in force, and /docs, which renders it; none of them needs a key. */
import Type from "typebox";
import { docsPath, docsScriptPath } from "../openapi/page.ts";
import { operation } from "../operation.ts";
import { jsonType } from "./examples.ts";

const common = { method: "get", tag: "Documentation", scope: null, faults: [], otherFaults: false } as const;

const exampleOf = (name: string, path: string, summary: string, contentType: string) => ({
  name,
  summary,
  needs: [],
  status: 200,
  contentType,
  request: () => ({ path }),
});

export const getContract = operation({
  ...common,
  operationId: "getContract",
  path: "/openapi.json",
  summary: "The contract",
  description:
    "This document, with the models of the current catalog. If this document and other documentation disagree, this document applies.",
  success: {
    description: "The contract",
    headers: [],
    content: { [jsonType]: { schema: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) } },
  },
  examples: [exampleOf("getContract", "/openapi.json", "The contract", jsonType)],
  handle: ({ documentation }) =>
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
  examples: [exampleOf("getDocs", docsPath, "The API reference", "text/html")],
  handle: ({ documentation }) => documentation.page(),
});

export const getDocsScript = operation({
  ...common,
  operationId: "getDocsScript",
  path: docsScriptPath,
  summary: "The script of the page",
  description: "Renders the document in the browser.",
  success: {
    description: "The script",
    headers: [],
    content: { "text/javascript": { schema: Type.String() } },
  },
  examples: [],
  handle: ({ documentation }, call) => documentation.script(call.request.headers),
});
