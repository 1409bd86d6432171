/** The operator's port answers to its own names alone (docs/design/service.md, The operator's port). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hostsNamed } from "../../../src/core/http/host.ts";
import { freePort } from "../../harness/daemon.ts";
import { rawClient } from "../../harness/raw-client.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";

describe("a Host", () => {
  const answersTo = hostsNamed(["sluice.internal", "sluice-1"]);

  test.each([null, "", "127.0.0.1", "127.0.0.1:9090", "10.1.2.3:80", "[::1]:9090", "[2001:db8::1]", "localhost:9090"])(
    "that is an address, localhost or nothing is answered: %p",
    (host) => expect(answersTo(host)).toBe(true),
  );

  test.each(["sluice.internal", "SLUICE.Internal:9090", "sluice.internal.", "sluice-1:1"])(
    "that is a name of the port is answered: %p",
    (host) => expect(answersTo(host)).toBe(true),
  );

  test.each([
    ...["attacker.example", "attacker.example:9090", "127.0.0.1.attacker.example", "localhost.attacker.example"],
    ...[
      "sluice.internal.attacker.example",
      "sluice",
      "127.1",
      "[attacker.example]",
      "[::1].attacker.example",
      "a b",
      ":",
    ],
    ...["127.0.0.1@attacker.example", "localhost:9090:1", "2130706433"],
  ])("that is anything else is not: %p", (host) => expect(answersTo(host)).toBe(false));
});

describe("a node", () => {
  let sluice: Sluice;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    sluice = await startSluice({
      env: { SLUICE_OPERATOR_PORT: String(port), SLUICE_OPERATOR_NAMES: "sluice.internal" },
    });
  }, 60_000);
  afterAll(() => sluice.stop(), 60_000);

  const answered = async (target: string, host: string) => {
    const client = await rawClient(`http://127.0.0.1:${port}`);
    await client.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    const text = await client.read(/(?!)/);
    client.leave();
    return { status: text.slice(9, 12), text };
  };

  test.each(["/metrics", "/management/v1/organizations", "/management.json", "/livez", "/nothing"])(
    "tells a page whose name leads to it nothing at %s",
    async (target) => {
      const { status, text } = await answered(target, `attacker.example:${port}`);
      expect(status).toBe("403");
      expect(text).toContain('"host_not_allowed"');
      expect(text).not.toContain("attacker");
      expect(text).toMatch(/x-service-request-id: req_/i);
    },
  );

  test("answers to its names, and to probes that name none", async () => {
    for (const host of [`127.0.0.1:${port}`, "localhost", `sluice.internal:${port}`])
      expect((await answered("/metrics", host)).status).toBe("200");
    const probe = await rawClient(`http://127.0.0.1:${port}`);
    await probe.write("GET /readyz HTTP/1.0\r\n\r\n");
    expect((await probe.read(/(?!)/)).slice(9, 12)).toBe("200");
  });

  test("checks nothing of it where clients ask: their names are whatever leads to the node", async () => {
    const client = await rawClient(sluice.url);
    await client.write("GET /livez HTTP/1.1\r\nhost: api.example\r\nconnection: close\r\n\r\n");
    expect((await client.read(/(?!)/)).slice(9, 12)).toBe("200");
  });
});
