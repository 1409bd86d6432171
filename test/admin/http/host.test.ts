/**
 * The operator's port refuses requests whose Host header is not one of its own (docs/design/service.md, The operator's
 * port).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hostsNamed } from "../../../src/admin/http/host.ts";
import { freePort } from "../../harness/daemon.ts";
import { rawClient, untilClosed } from "../../harness/raw-client.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";

describe("a Host", () => {
  const answersTo = hostsNamed(["sluice.internal", "sluice-1"]);

  test.each([
    ...[null, "", "127.0.0.1", "127.0.0.1:9090", "10.1.2.3:80", "[::1]:9090", "[2001:db8::1]", "localhost:9090"],
    ...["sluice.internal", "SLUICE.Internal:9090", "sluice.internal.", "sluice-1:1"],
  ])("that is an address, localhost, nothing or a name of the port is answered: %p", (host) =>
    expect(answersTo(host)).toBe(true),
  );

  test.each([
    ...["attacker.example", "attacker.example:9090", "127.0.0.1.attacker.example", "localhost.attacker.example"],
    ...["sluice.internal.attacker.example", "sluice", "127.1", "[attacker.example]", "[::1].attacker.example"],
    ...["127.0.0.1@attacker.example", "localhost:9090:1", "2130706433", "a b", ":"],
  ])("that is anything else is not: %p", (host) => expect(answersTo(host)).toBe(false));
});

describe("a node", () => {
  let sluice: Sluice;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    const env = { SLUICE_OPERATOR_PORT: String(port), SLUICE_OPERATOR_NAMES: "sluice.internal" };
    sluice = await startSluice({ env });
  }, 60_000);
  afterAll(() => sluice.stop(), 60_000);

  const answered = async (target: string, head: string, url = `http://127.0.0.1:${port}`) => {
    const client = await rawClient(url);
    await client.write(`GET ${target} ${head}\r\n\r\n`);
    const text = await client.read(untilClosed);
    client.leave();
    return { status: text.slice(9, 12), text };
  };
  const naming = (host: string) => `HTTP/1.1\r\nhost: ${host}\r\nconnection: close`;

  test.each(["/metrics", "/management/v1/organizations", "/management.json", "/livez", "/nothing"])(
    "tells a page whose name leads to it nothing at %s",
    async (target) => {
      const { status, text } = await answered(target, naming(`attacker.example:${port}`));
      expect(status).toBe("403");
      expect(text).toContain('"host_not_allowed"');
      expect(text).not.toContain("attacker");
      expect(text).toMatch(/x-service-request-id: req_/i);
    },
  );

  test("answers to its names, and to probes that name none", async () => {
    for (const host of [`127.0.0.1:${port}`, "localhost", `sluice.internal:${port}`])
      expect((await answered("/metrics", naming(host))).status).toBe("200");
    expect((await answered("/readyz", "HTTP/1.0")).status).toBe("200");
  });

  test("checks nothing of it where clients ask: their names are whatever leads to the node", async () => {
    expect((await answered("/livez", naming("api.example"), sluice.url)).status).toBe("200");
  });
});
