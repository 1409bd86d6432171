/** The management interface as operations of the operator's port, with its contract and the page that shows it. */
import Type from "typebox";
import { docsPage, docsPath, docsScript, docsScriptPath } from "../../api/openapi/page.ts";
import { type Operation, operation } from "../../api/operation.ts";
import { jsonType } from "../../api/operations/examples.ts";
import { contractPath, managementTitle, renderManagement } from "./document.ts";
import { managementPath } from "./operation.ts";
import { managementOperations } from "./operations.ts";
import { type ManagementEntrance, serveManagement } from "./serve.ts";

/** Who may is asked by serve.ts: an operator is not the holder of a key. */
const common = { scope: null, faults: [], otherFaults: false, examples: [] } as const;

export function managementServed(entrance: ManagementEntrance): Operation[] {
  const verbs = managementOperations.map((one) =>
    operation({
      ...common,
      operationId: one.verb,
      method: one.method,
      path: managementPath + one.path,
      idPrefix: "",
      tag: one.tag,
      summary: one.summary,
      description: one.description,
      success: { description: one.summary, headers: [], content: { [jsonType]: { schema: one.answers } } },
      handle: serveManagement(entrance, one),
    }),
  );
  return [...verbs, ...documentation(entrance)];
}

function documentation({ version }: ManagementEntrance): Operation[] {
  const page = docsPage({ title: managementTitle, document: contractPath.slice(1) });
  const script = docsScript();
  const text = renderManagement(managementOperations, version);
  const served = (operationId: string, path: string, type: string, handle: Operation["handle"]) =>
    operation({
      ...common,
      ...{ operationId, method: "get", path, tag: "Documentation", summary: path, description: path, handle },
      success: { description: path, headers: [], content: { [type]: { schema: Type.String() } } },
    });
  return [
    served("getManagementContract", contractPath, jsonType, () => {
      return new Response(text, { headers: { "content-type": jsonType, "cache-control": "no-cache" } });
    }),
    served("getManagementDocs", docsPath, "text/html", () => page()),
    served("getManagementDocsScript", docsScriptPath, "text/javascript", (_, { request }) => script(request.headers)),
  ];
}
