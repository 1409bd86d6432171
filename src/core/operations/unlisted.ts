/** Operations that are served but not in the contract: pages, their files, and the endpoints of sign-ins. */
import Type from "typebox";
import type { Call } from "../http/call.ts";
import { Fault } from "../inference/fault.ts";
import { jsonType, type Operation, operation } from "./operation.ts";

interface Unlisted extends Pick<Operation, "method" | "path" | "handle" | "faultShape"> {
  id: string;
  /** The media type of the answer; JSON by default. */
  type?: string;
}

export function unlisted({ id, type = jsonType, ...served }: Unlisted): Operation {
  const { path } = served;
  return operation({
    ...served,
    operationId: id,
    tag: "Documentation",
    summary: path,
    description: path,
    scope: null,
    faults: [],
    otherFaults: false,
    success: { description: path, headers: [], content: { [type]: { schema: Type.String() } } },
  });
}

/** The fault of a path that exists but is not configured. */
export function notThere(call: Call): Fault {
  return new Fault("route_not_found", `There is nothing at '${call.route}'. /openapi.json lists all paths.`);
}
