/**
 * The client address that the service takes from forwarded headers, and keys that may be used from some addresses only:
 * docs/design/service.md, Client addresses.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isNetwork, liesIn } from "../../../src/core/auth/network.ts";
import { clientAddresses } from "../../../src/core/http/bounds.ts";
import { busyness } from "../../harness/busyness.ts";
import { errorOf, type Service, startService } from "../../harness/engine.ts";
import { until } from "../../harness/until.ts";

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

describe("a key with allowed addresses", () => {
  let service: Service;
  let id: string;
  let key: string;
  beforeAll(async () => {
    service = await startService({ sluice: { env: { SLUICE_TRUSTED_PROXIES: "127.0.0.1,::1" } } });
    await service.json("org", "create", "acme");
    ({ id, key } = await service.json<{ id: string; key: string }>("key", "create", "--org", "acme", "--name", "k"));
  }, 60_000);
  afterAll(() => service.stop(), 60_000);

  const from = (address: string) => service.fetch("/v1/models", { key, headers: { "x-forwarded-for": address } });

  test("is refused from any other address with a fault of its own, within a second of the change", async () => {
    expect((await from("198.51.100.1")).status).toBe(200);
    await service.json("key", "update", id, "--allow-from", "192.0.2.0/24,2001:db8::/64");
    const changed_ms = performance.now();
    await until(async () => (await from("198.51.100.1")).status === 403, 5_000, "the refusal");
    expect(performance.now() - changed_ms).toBeLessThan(2_000 * busyness());
    const error = await errorOf(await from("198.51.100.1"));
    expect(error).toMatchObject({ code: "address_not_allowed", type: "permission_error", param: null });
    expect(error.message).not.toContain("192.0.2");
    // Only the last address counts, which the proxy writes; a client can forge those before it.
    for (const address of ["192.0.2.7, 198.51.100.1", "2001:db8:0:1::7"])
      expect((await from(address)).status).toBe(403);
    for (const address of ["192.0.2.7", "198.51.100.1, 192.0.2.7", "2001:db8::7"])
      expect((await from(address)).status).toBe(200);
    await service.json("key", "update", id, "--allow-from", "all");
    await until(async () => (await from("198.51.100.1")).status === 200, 5_000, "the address");
  });

  test("a proxy's own address lets in nobody, whatever its client has written into the headers", async () => {
    const create = ["key", "create", "--org", "acme", "--name", "proxy's"];
    const own = await service.json<{ key: string }>(...create, "--allow-from", "127.0.0.0/8");
    const status = async (headers: Record<string, string>) =>
      (await service.fetch("/v1/models", { key: own.key, headers })).status;
    expect(await status({ "x-forwarded-for": "127.0.0.9" })).toBe(200);
    const refused: Record<string, string>[] = [
      {},
      { "x-forwarded-for": "198.51.100.1" },
      { "x-forwarded-for": "127.0.0.9, unknown" },
      { "x-forwarded-for": "127.0.0.9, 198.51.100.1", forwarded: "for=127.0.0.9" },
      { "x-forwarded-for": "198.51.100.1", forwarded: "garbage" },
      { "x-forwarded-for": `${"127.0.0.9, ".repeat(400)}198.51.100.1` },
      { forwarded: "for=127.0.0.9" },
    ];
    for (const headers of refused) expect([headers, await status(headers)]).toEqual([headers, 403]);
  });

  test("the address of its last use is beside the time", async () => {
    await until(
      async () => {
        await from("203.0.113.9");
        const shown = await service.json<{ last_used_from: string; last_used_at: string }>("key", "show", id);
        return shown.last_used_from === "203.0.113.9" && shown.last_used_at !== null;
      },
      20_000,
      "the last use",
    );
  }, 30_000);
});
