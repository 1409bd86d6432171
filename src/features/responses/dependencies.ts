/**
 * The dependencies of the operations on stored and kept responses, in addition to those of the core; made by
 * `src/node`.
 */
import type { Dependencies } from "../../core/operations/dependencies.ts";
import type { KeptParts } from "./parts.ts";
import type { ResponseStore } from "./store/responses.ts";

export interface ResponsesDependencies extends Dependencies {
  /** The stored responses that can be continued. */
  responses: { store: ResponseStore; settings(): ResponseSettings };
  /** The answers that are kept, so that they can be read again. */
  kept: KeptParts;
}

interface ResponseSettings {
  /** Whether responses are stored. If not, none is found either. */
  store: boolean;
  /** The most bytes of all stored responses of an organization. */
  organization_bytes_max: number;
}
