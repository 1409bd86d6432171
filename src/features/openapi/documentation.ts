/** Renders the contract for clients, once for each catalog, and the page that shows it. */
import type { Dependencies } from "../../core/operations/dependencies.ts";
import type { Operation } from "../../core/operations/operation.ts";
import type { Catalog } from "../../core/routing/catalog.ts";
import { renderOpenapi } from "./document.ts";
import { docsPage, docsScript } from "./page.ts";

/** The dependencies of the operations that show the contract, in addition to those of the core. */
export interface OpenapiDependencies extends Dependencies {
  documentation: ReturnType<typeof documentation>;
}

/** `version`: the version of the contract. */
export function documentation(contract: readonly Operation[], catalog: () => Catalog, version: string) {
  let rendered: Catalog | null = null;
  let text = "";
  return {
    /** The contract for the catalog in force, as JSON text, which is kept until a reload makes a new catalog. */
    openapi(): string {
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
