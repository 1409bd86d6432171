/** The contract as clients get it: rendered once for each catalog, with the page that shows it. */
import type { Catalog } from "../routing/catalog.ts";
import type { Documentation } from "./dependencies.ts";
import { renderOpenapi } from "./openapi/document.ts";
import { docsPage, docsScript } from "./openapi/page.ts";
import { contract } from "./operations.ts";

/** `version`: the version of the contract. */
export function documentation(catalog: () => Catalog, version: string): Documentation {
  let rendered: Catalog | null = null;
  let text = "";
  return {
    /** A reload makes a new catalog; until then the text stays. */
    openapi() {
      const current = catalog();
      if (rendered !== current) {
        text = renderOpenapi(contract, [...current.models.values()], version);
        rendered = current;
      }
      return text;
    },
    page: docsPage(),
    script: docsScript(),
  };
}
