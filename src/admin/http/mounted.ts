/**
 * Mounts the verbs of management as operations of the operator's port, with their contract and the page that shows it.
 */

import { jsonSuccess, jsonType, type Operation, operation } from "../../core/operations/operation.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import { docsPage, docsPath, docsScript, docsScriptPath } from "../../features/openapi/page.ts";
import { verbs } from "../management/verbs.ts";
import { contractPath, managementTitle, renderManagement } from "./document.ts";
import { faultsOf, gate, type ManagementEntrance, managementPath } from "./gate.ts";
import { tryModel } from "./try-model.ts";

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
      // Null, because the gate checks the caller's role instead of a key's scope.
      scope: null,
      faults: faultsOf(verb),
      otherFaults: false,
      examples: [],
      success: jsonSuccess(verb.summary, { schema: verb.answers }),
      handle: gate(entrance, verb, followers),
    }),
  );
  return trying ? [...mounted, tryModel(entrance, trying)] : mounted;
}

function documentation({ version }: ManagementEntrance): Operation[] {
  const page = docsPage({ title: managementTitle, document: contractPath.slice(1) });
  const script = docsScript();
  const text = renderManagement(version);
  const served = (id: string, path: string, type: string, handle: Operation["handle"]) =>
    unlisted({ id, method: "get", path, type, handle });
  return [
    served("getManagementContract", contractPath, jsonType, () => {
      return new Response(text, { headers: { "content-type": jsonType, "cache-control": "no-cache" } });
    }),
    served("getManagementDocs", docsPath, "text/html", () => page()),
    served("getManagementDocsScript", docsScriptPath, "text/javascript", (_, { request }) => script(request.headers)),
  ];
}
