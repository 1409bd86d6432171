/** The dependencies of the operations that show the contract, in addition to those of the core. */
import type { Dependencies } from "../../core/operations/dependencies.ts";

export interface OpenapiDependencies extends Dependencies {
  documentation: Documentation;
}

export interface Documentation {
  /** The contract (the OpenAPI document) for the catalog in force, as JSON text. */
  openapi(): string;
  page(): Promise<Response>;
  /** The script of the documentation page, for a request with these headers. */
  script(requestHeaders: Headers): Promise<Response>;
}
