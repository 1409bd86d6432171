/** Addresses of this machine and of its link, to which a name must not resolve. */
import { isIP } from "node:net";
import { liesIn } from "../../auth/network.ts";

/** The loopback, unspecified and link-local networks. A mapped address (`::ffff:127.0.0.1`) is judged as IPv4. */
const own = liesIn(["127.0.0.0/8", "0.0.0.0/8", "169.254.0.0/16", "::/127", "fe80::/10"]);

export function isOwnAddress(address: string): boolean {
  return isIP(address) === 0 || own(address);
}

/** Whether the name itself stands for this machine, such as `localhost`. */
export function isOwnName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}
