/** Tests for docs/design/service.md, Client addresses. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { isNetwork, liesIn } from "../../../src/core/auth/network.ts";
import { clientAddresses } from "../../../src/core/http/bounds.ts";

const proxy = "10.0.0.7";
const client = "203.0.113.5";
const trusted = ["10.0.0.0/8", "192.0.2.9", "2001:db8:1::/48"];
const seen = (
  peer: string,
  headers: Record<string, string> = {},
  { networks = trusted, header = "x-forwarded-for" } = {},
) => clientAddresses({ trustedProxies: networks, clientAddressHeader: header })(peer, new Headers(headers));

test("without trusted proxies, and from whoever is none, the peer counts", () => {
  const claims = { "x-forwarded-for": client, forwarded: `for=${client}` };
  expect(seen("198.51.100.1", claims, { networks: [] })).toBe("198.51.100.1");
  expect(seen("198.51.100.1", claims)).toBe("198.51.100.1");
});

test.each([
  [client, client],
  // Addresses further left were written by the client.
  [`198.51.100.9, ${client}`, client],
  [`198.51.100.9, ${client}, 192.0.2.9, 10.1.1.1`, client],
  [`not an address, ${client}, 10.1.1.1`, client],
  [`${"198.51.100.9, ".repeat(1000)}${client}`, client],
  [`${"x".repeat(100_000)},${client}`, client],
  [`,,,${client}`, client],
  [`${client}:4711`, client],
  [`::ffff:${client}`, client],
  ["2001:db8:7::17", "2001:db8:7:0::/64"],
  // If all addresses are proxies, the first of them is the client.
  ["10.1.1.1, 192.0.2.9", "10.1.1.1"],
  // No proxy named the client before this hop.
  [`${client}, unknown`, "unknown"],
  [`${client}, _hidden, 10.1.1.1`, "unknown"],
  [`${client},`, "unknown"],
  ["", "unknown"],
  [",", "unknown"],
  ["10.1.1.1,".repeat(40) + proxy, "unknown"],
])("x-forwarded-for '%s' of a trusted proxy", (header, expected) => {
  expect(seen(proxy, { "x-forwarded-for": header })).toBe(expected);
});

test.each([
  [`for=${client}`, client],
  [`for=198.51.100.9, for="${client}:80";proto=https;by=10.0.0.7`, client],
  ['proto=http; For="[2001:db8:7::17]:4711"', "2001:db8:7:0::/64"],
  [`for="198.51.100.9, for=${client}`, client],
  [`for=${client}, by=10.0.0.7`, "unknown"],
  ["for=_secret", "unknown"],
])("forwarded '%s' of a trusted proxy that writes it", (header, expected) => {
  expect(seen(proxy, { forwarded: header, "x-forwarded-for": "198.51.100.1" }, { header: "forwarded" })).toBe(expected);
});

test("only the header that the operator named is read, whatever a client put into the others", () => {
  for (const forwarded of ["for=192.0.2.1", "garbage", `for=${proxy}`, ""]) {
    expect(seen(proxy, { forwarded, "x-forwarded-for": client })).toBe(client);
    expect(seen(proxy, { forwarded })).toBe("unknown");
  }
  expect(seen(proxy, { "x-real-ip": client, "x-forwarded-for": "192.0.2.1" }, { header: "x-real-ip" })).toBe(client);
});

test("a client that its proxy does not name is in no network, not even in that of the proxy", () => {
  const isAllowed = liesIn(["0.0.0.0/0", "::/0"]);
  expect(isAllowed(seen(proxy))).toBe(false);
  expect(isAllowed(seen(proxy, { "x-forwarded-for": client }))).toBe(true);
});

test("an IPv6 client counts by its /64, however the address is written", () => {
  for (const one of ["2001:db8:7:1::", "2001:db8:7:1:a:b:c:d", "2001:0db8:0007:0001::9", "2001:db8:7:1:ffff::"])
    expect(seen(one)).toBe("2001:db8:7:1::/64");
  expect(seen("::1")).toBe("0:0:0:0::/64");
  expect(seen("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
});

test("whatever a client writes, it never passes for another behind a proxy that appends", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (written) => {
      const text = written.replace(/[^\x20-\x7e]/g, "");
      return (
        seen(proxy, { "x-forwarded-for": `${text}, ${client}` }) === client &&
        seen(proxy, { forwarded: `${text}, for=${client}` }, { header: "forwarded" }) === client
      );
    }),
  );
});

test("a text that names an address or a network", () => {
  for (const good of ["10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "2001:db8::/128"])
    expect(isNetwork(good)).toBe(true);
  for (const bad of ["", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/8/8", "proxy.local", "10.0.0.0/-1"])
    expect(isNetwork(bad)).toBe(false);
});
