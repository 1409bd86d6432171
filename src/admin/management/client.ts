/**
 * A client of the verbs (management operations): one function for each verb, over any transport. In the node's process
 * the functions perform the verbs directly; a command reaches a running node through its socket (cli/socket.ts) or
 * another node through its operator's port (cli/remote.ts).
 */
import { decode, jsonOf } from "../../core/schema/codec.ts";
import { type ManagementContext, type ManagementOptions, managementContext } from "./context.ts";
import { perform, type Verb } from "./verb.ts";
import { type Management, verbs } from "./verbs.ts";

/**
 * Sends JSON to a verb and returns the verb's answer. Throws a ManagementError for a refusal; any other error is an
 * outage.
 */
export type Transport = (verb: Verb, json: unknown) => Promise<unknown>;

export function client(transport: Transport): Management {
  const functions = verbs.map((verb) => {
    const call = async (given: unknown = {}) => decode(verb.answers, await transport(verb, jsonOf(verb.input, given)));
    return [verb.name, call] as const;
  });
  return Object.fromEntries(functions) as unknown as Management;
}

export function direct(context: ManagementContext): Transport {
  return (verb, json) => perform(verb, context, json);
}

/** Makes the client that performs the verbs within this process. */
export function management(options: ManagementOptions): Management {
  return client(direct(managementContext(options)));
}
