/** Addresses and networks as text (`10.0.0.0/8`, `::1`), and whether an address lies in one of them. */
import { BlockList, isIP, isIPv6 } from "node:net";

export function isNetwork(text: string): boolean {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/**
 * Returns a function that tests whether an address lies in one of the networks. An address without a prefix length is
 * its own network; clients of IPv6 may be given as `2001:db8::/64`.
 */
export function liesIn(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const kind = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, kind);
    else list.addSubnet(address, Number(bits), kind);
  }
  return (address) => {
    const [first = ""] = address.split("/");
    return isIP(first) !== 0 && list.check(first, isIPv6(first) ? "ipv6" : "ipv4");
  };
}
