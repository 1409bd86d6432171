/** Renders the contract for clients, once for each catalog, and the page that shows it. */

import type { Operation } from "../../core/operations/operation.ts";
import type { Catalog } from "../../core/routing/catalog.ts";
import type { Documentation } from "./dependencies.ts";
import { renderOpenapi } from "./document.ts";
import { docsPage, docsScript } from "./page.ts";

/** Makes the documentation of the contract. `version`: the version of the contract. */
export function documentation(contract: readonly Operation[], catalog: () => Catalog, version: string): Documentation {
  let rendered: Catalog | null = null;
  let text = "";
  return {
    /** The text is kept until a reload makes a new catalog. */
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
