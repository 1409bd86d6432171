/**
 * Checks the `Host` of requests. A web page can make its own name resolve to an address inside the network (DNS
 * rebinding) and then read this service's responses as if they came from the page's own site. But the `Host` of such
 * requests is still the page's name (docs/design/service.md, The operator's port).
 */
import { isIPv4, isIPv6 } from "node:net";
import type { Framed } from "../../core/http/frame.ts";
import { Fault } from "../../core/inference/fault.ts";
import { encodeFault } from "../../core/protocol/openai-chat/fault.ts";

/**
 * Returns a function that tests whether a `Host` is an address, `localhost`, or one of these names (in lower case).
 * Requests without a `Host` pass, because plain probes send none.
 */
export function hostsNamed(names: readonly string[] = []): (host: string | null) => boolean {
  const hosts = new Set(["localhost", ...names]);
  return (host) => {
    if (host === null || host === "") return true;
    const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1];
    if (bracketed !== undefined) return isIPv6(bracketed);
    const name = host.replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
    return isIPv4(name) || hosts.has(name);
  };
}

/** The response to a request whose `Host` is none of the allowed names. */
export const otherHost: Framed = {
  path: "/*",
  faultBody: encodeFault,
  work() {
    throw new Fault(
      "host_not_allowed",
      "The operator's port doesn't answer to this host name. Use its address, or add the name to SLUICE_OPERATOR_NAMES.",
    );
  },
};
