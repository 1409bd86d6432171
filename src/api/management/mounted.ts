/** The verbs as operations of the operator's port, with their contract and the page that shows it. */
import Type from "typebox";
import { verbs } from "../../management/verbs.ts";
import { docsPage, docsPath, docsScript, docsScriptPath } from "../openapi/page.ts";
import { type Operation, operation } from "../operation.ts";
import { jsonType } from "../operations/examples.ts";
import { contractPath, managementTitle, renderManagement } from "./document.ts";
import { faultsOf, gate, type ManagementEntrance, managementPath } from "./gate.ts";
import { tryModel } from "./try-model.ts";

/** The verbs, with their contract and its page. */
export function managementServed(entrance: ManagementEntrance): Operation[] {
  return [...managementMounted(entrance), ...documentation(entrance)];
}

export function managementMounted(entrance: ManagementEntrance): Operation[] {
  const followers = { count: 0 };
  const { trying } = entrance;
  const mounted = verbs.map((verb) =>
    operation({
      operationId: verb.name,
      method: verb.method,
      path: managementPath + verb.path,
      idPrefix: "",
      tag: verb.tag,
      summary: verb.summary,
      description: verb.description,
      // The gate requires an operator's role where other operations require a key's scope.
      scope: null,
      faults: faultsOf(verb),
      otherFaults: false,
      examples: [],
      success: { description: verb.summary, headers: [], content: { [jsonType]: { schema: verb.answers } } },
      handle: gate(entrance, verb, followers),
    }),
  );
  return trying ? [...mounted, tryModel(entrance, trying)] : mounted;
}

function documentation({ version }: ManagementEntrance): Operation[] {
  const page = docsPage({ title: managementTitle, document: contractPath.slice(1) });
  const script = docsScript();
  const text = renderManagement(version);
  const served = (operationId: string, path: string, type: string, handle: Operation["handle"]) =>
    operation({
      operationId,
      method: "get",
      path,
      tag: "Documentation",
      summary: path,
      description: path,
      scope: null,
      faults: [],
      otherFaults: false,
      examples: [],
      success: { description: path, headers: [], content: { [type]: { schema: Type.String() } } },
      handle,
    });
  return [
    served("getManagementContract", contractPath, jsonType, () => {
      return new Response(text, { headers: { "content-type": jsonType, "cache-control": "no-cache" } });
    }),
    served("getManagementDocs", docsPath, "text/html", () => page()),
    served("getManagementDocsScript", docsScriptPath, "text/javascript", (_, { request }) => script(request.headers)),
  ];
}
