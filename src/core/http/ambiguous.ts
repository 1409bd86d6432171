/**
 * Refuses heads that two parsers may read differently: a proxy in front of this service may have let through another
 * request.
 */
import { Fault } from "../inference/fault.ts";

/** Throws 400; the connection has to be closed after that. The runtime's own parser refuses the other such heads. */
export function refuseAmbiguous(headers: Headers): void {
  // Two fields of one name are joined by a comma, which no host has.
  if (headers.get("host")?.includes(",")) throw ambiguous("has more than one Host header");
  const coding = headers.get("transfer-encoding");
  if (coding !== null && coding.toLowerCase() !== "chunked")
    throw ambiguous("has a Transfer-Encoding other than chunked");
}

function ambiguous(what: string): Fault {
  return new Fault("invalid_value", `The head of this request ${what}. Send it once, as HTTP/1.1 describes it.`, {
    headers: { connection: "close" },
  });
}
