/** GET /openapi.json, for the catalog in force, and /docs, which renders it; neither needs a key. */
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import type { Catalog } from "../../routing/catalog.ts";
import { docsPage, docsPath, docsScript, docsScriptPath } from "../contract/docs.ts";
import { renderOpenapi } from "../contract/openapi.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";

export function contractRoutes(house: House): Route[] {
  const rendered = renderedOnce(house);
  const page = docsPage();
  const script = docsScript();
  return [
    {
      path: "/openapi.json",
      methods: {
        GET: () =>
          new Response(rendered(), { headers: { "content-type": "application/json", "cache-control": "no-cache" } }),
      },
      faultBody: encodeFault,
    },
    { path: docsPath, methods: { GET: page }, faultBody: encodeFault },
    { path: docsScriptPath, methods: { GET: (call) => script(call.request.headers) }, faultBody: encodeFault },
  ];
}

/** A reload makes a new catalog; until then the text stays. */
function renderedOnce(house: House): () => string {
  let of: Catalog | null = null;
  let text = "";
  return () => {
    const catalog = house.catalog();
    if (of !== catalog) {
      text = renderOpenapi([...catalog.models.values()], house.contractVersion);
      of = catalog;
    }
    return text;
  };
}
