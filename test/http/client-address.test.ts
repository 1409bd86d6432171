import { expect, test } from "bun:test";
import fc from "fast-check";
import { isNetwork } from "../../src/auth/network.ts";
import { clientAddresses } from "../../src/http/client-address.ts";

const proxy = "10.0.0.7";
const trusted = ["10.0.0.0/8", "192.0.2.9", "2001:db8:1::/48"];
const seen = (peer: string, headers: Record<string, string> = {}, networks = trusted) =>
  clientAddresses(networks)(peer, new Headers(headers));

test("without trusted proxies, and from whoever is none, the peer counts", () => {
  const claims = { "x-forwarded-for": "203.0.113.5", forwarded: "for=203.0.113.5" };
  expect(seen("198.51.100.1", claims, [])).toBe("198.51.100.1");
  expect(seen("198.51.100.1", claims)).toBe("198.51.100.1");
  expect(seen(proxy)).toBe(proxy);
});

test.each([
  ["203.0.113.5", "203.0.113.5"],
  // What stands further left, the client has written.
  ["198.51.100.9, 203.0.113.5", "203.0.113.5"],
  ["198.51.100.9, 203.0.113.5, 192.0.2.9, 10.1.1.1", "203.0.113.5"],
  ["203.0.113.5:4711", "203.0.113.5"],
  ["::ffff:203.0.113.5", "203.0.113.5"],
  ["2001:db8:7::17", "2001:db8:7:0::/64"],
  // Proxies all the way: the first of them.
  ["10.1.1.1, 192.0.2.9", "10.1.1.1"],
  // What is no address tells nothing, nor does what stands left of it.
  ["203.0.113.5, unknown", proxy],
  ["203.0.113.5, _hidden, 10.1.1.1", "10.1.1.1"],
  ["", proxy],
  [`${"203.0.113.5, ".repeat(1000)}203.0.113.5`, proxy],
])("x-forwarded-for '%s' of a trusted proxy", (header, client) => {
  expect(seen(proxy, { "x-forwarded-for": header })).toBe(client);
});

test.each([
  ["for=203.0.113.5", "203.0.113.5"],
  ['for=198.51.100.9, for="203.0.113.5:80";proto=https;by=10.0.0.7', "203.0.113.5"],
  ['proto=http; For="[2001:db8:7::17]:4711"', "2001:db8:7:0::/64"],
  ["for=203.0.113.5, by=10.0.0.7", proxy],
  ["for=_secret", proxy],
])("forwarded '%s' of a trusted proxy", (header, client) => {
  expect(seen(proxy, { forwarded: header })).toBe(client);
});

test("where the two headers disagree, neither is believed: a proxy writes one, and the client the other", () => {
  expect(seen(proxy, { forwarded: "for=203.0.113.5", "x-forwarded-for": "203.0.113.5" })).toBe("203.0.113.5");
  expect(seen(proxy, { forwarded: "for=203.0.113.6", "x-forwarded-for": "203.0.113.5" })).toBe(proxy);
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
      return seen(proxy, { "x-forwarded-for": `${text}, 203.0.113.5` }) === "203.0.113.5";
    }),
  );
});

test("what names an address or a network", () => {
  for (const good of ["10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "2001:db8::/128"])
    expect(isNetwork(good)).toBe(true);
  for (const bad of ["", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/8/8", "proxy.local", "10.0.0.0/-1"])
    expect(isNetwork(bad)).toBe(false);
});
