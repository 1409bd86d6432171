/** The contract as it is served: rendered once for each catalog, with the page that shows it. */
import type { Catalog } from "../routing/catalog.ts";
import type { Documentation } from "./dependencies.ts";
import { renderOpenapi } from "./openapi/document.ts";
import { docsPage, docsScript } from "./openapi/page.ts";
import { contract } from "./operations.ts";

/** `version` is the contract's. */
export function documentation(catalog: () => Catalog, version: string): Documentation {
  let of: Catalog | null = null;
  let text = "";
  return {
    /** A reload makes a new catalog; until then the text stays. */
    openapi() {
      const current = catalog();
      if (of !== current) {
        text = renderOpenapi(contract, [...current.models.values()], version);
        of = current;
      }
      return text;
    },
    page: docsPage(),
    script: docsScript(),
  };
}
