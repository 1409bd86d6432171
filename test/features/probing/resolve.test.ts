/** DNS look-ups over real sockets: the servers return addresses, that there are none, or an error. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AddressFamily } from "../../../src/core/upstream/target.ts";
import { type ResolvedAddresses, resolve } from "../../../src/features/probing/resolve.ts";
import { type NameServer, type Records, startNameServer } from "../../harness/name-server.ts";

let server: NameServer;
beforeAll(async () => {
  server = await startNameServer();
});
afterAll(() => server.stop());

function asked(records: Records, family: AddressFamily = "all"): Promise<ResolvedAddresses> {
  server.names.set("engines.test", records);
  return resolve("engines.test", { family, servers: [server.at] });
}
const none: ResolvedAddresses = { addresses: [], ttl_ms: null, failedFamily: null };

test("addresses of both families, and how long the shortest of them holds", async () => {
  const both = { ipv4: ["10.0.0.1", "10.0.0.2"], ipv6: ["fd00::1"], ttl_s: 7 };
  expect(await asked(both)).toEqual({
    addresses: ["10.0.0.1", "10.0.0.2", "fd00::1"],
    ttl_ms: 7000,
    failedFamily: null,
  });
  expect(await asked(both, "ipv4")).toMatchObject({ addresses: ["10.0.0.1", "10.0.0.2"] });
  expect(await asked(both, "ipv6")).toMatchObject({ addresses: ["fd00::1"] });
  expect(await asked({ ipv6: ["fd00::1"] })).toEqual({ addresses: ["fd00::1"], ttl_ms: 0, failedFamily: null });
});

test("each time anew, however long the last answer holds", async () => {
  expect((await asked({ ipv4: ["10.0.0.1"], ttl_s: 3600 })).addresses).toEqual(["10.0.0.1"]);
  expect((await asked({ ipv4: ["10.0.0.2"], ttl_s: 3600 })).addresses).toEqual(["10.0.0.2"]);
});

test("a name that is not there, or has no address, has none", async () => {
  expect(await asked({ says: "absent" })).toEqual(none);
  expect(await asked({})).toEqual(none);
  expect(await asked({ ipv6: ["fd00::1"] }, "ipv4")).toEqual(none);
});

test("a server that fails, refuses or says nothing tells nothing", async () => {
  for (const says of ["failure", "refusal", "silent"] as const) await expect(asked({ says })).rejects.toThrow();
}, 30_000);

test("where one family cannot be told, the other is", async () => {
  const half: Records = { ipv4: ["10.0.0.1"], says: { ipv6: "failure" } };
  expect(await asked(half)).toMatchObject({ addresses: ["10.0.0.1"], failedFamily: "ipv6" });
});

test("hundreds of addresses come, over TCP", async () => {
  const many = Array.from({ length: 400 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  const before = server.asked.tcp;
  const { addresses } = await asked({ ipv4: many });
  expect(addresses.toSorted()).toEqual(many.toSorted());
  expect(server.asked.tcp).toBeGreaterThan(before);
});

test("without servers, as the system resolves names", async () => {
  const { addresses } = await resolve("localhost", { family: "all", servers: [] });
  expect(addresses.some((address) => address === "127.0.0.1" || address === "::1")).toBe(true);
});
