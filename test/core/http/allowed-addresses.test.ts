/**
 * A key that may be used from some addresses only. What counts is the client's address, not that of a proxy in between.
 */
import { afterAll, expect, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { errorOf, startService } from "../../harness/engine.ts";
import { until } from "../../harness/until.ts";

const service = await startService({ sluice: { env: { SLUICE_TRUSTED_PROXIES: "127.0.0.1,::1" } } });
await service.json("org", "create", "acme");
const { id, key } = await service.json<{ id: string; key: string }>("key", "create", "--org", "acme", "--name", "k");
afterAll(() => service?.stop(), 60_000);

const from = (address: string) => service.fetch("/v1/models", { key, headers: { "x-forwarded-for": address } });

test("it is refused from any other address with a fault of its own, within a second of the change", async () => {
  expect((await from("198.51.100.1")).status).toBe(200);
  await service.json("key", "update", id, "--allow-from", "192.0.2.0/24,2001:db8::/64");
  const changed_ms = performance.now();
  await until(async () => (await from("198.51.100.1")).status === 403, 5_000, "the refusal");
  expect(performance.now() - changed_ms).toBeLessThan(2_000 * busyness());
  const error = await errorOf(await from("198.51.100.1"));
  expect(error).toMatchObject({ code: "address_not_allowed", type: "permission_error", param: null });
  expect(error.message).not.toContain("192.0.2");
  // Only the last address counts, which the proxy writes; a client can forge those before it.
  for (const address of ["192.0.2.7, 198.51.100.1", "2001:db8:0:1::7"]) expect((await from(address)).status).toBe(403);
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
