/** The dependencies of the operations on stored and kept responses, beyond those of the core; `src/node` makes them. */
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
  /** If false, no response is stored, and none is found. */
  store: boolean;
  /** The limit of all stored responses of an organization. */
  organization_bytes_max: number;
}
