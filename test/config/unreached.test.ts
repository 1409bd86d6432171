/** The reason why an engine could not be reached, derived from errors that the engine client really throws. */
import { afterAll, expect, test } from "bun:test";
import { whyUnreached } from "../../src/config/unreached.ts";
import { Cancellation } from "../../src/core/time/cancellation.ts";
import { client } from "../../src/core/upstream/http1/client.ts";
import { addressesOf, ConnectFailed, type TlsSettings } from "../../src/core/upstream/http1/dial.ts";
import { authority, daysFromNow, type Identity } from "../harness/certificates.ts";

const issuer = authority();
const servers: { stop(force: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
});

function engine(identity: Identity | null, more: object = {}): string {
  const tls = identity && { tls: { cert: identity.certificate, key: identity.key, ...more } };
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(), ...tls });
  servers.push(server);
  return `https://127.0.0.1:${server.port}/v1`;
}

/** Sends a request with the engine client, and returns the reason for its failure. */
async function reason(url: string, tls: TlsSettings | null = { ca: issuer.certificate, certificate: null }) {
  const engines = client();
  const signal = Cancellation.timeout(5_000);
  const asked = { url: `${url}/models`, headers: {}, tls, connect_ms: 5_000, signal, address: undefined };
  const error = await engines.get(asked).catch((cause: unknown) => cause);
  engines.close();
  return whyUnreached(error, "trust it");
}

test("a certificate: not trusted, of another name, expired, or the client's, which is missing", async () => {
  const own = issuer.issue(["127.0.0.1"]);
  expect(await reason(engine(own), null)).toMatch(/not trusted here \(\w+\); if the authority is your own, trust it$/);
  expect(await reason(engine(issuer.issue(["other.example"])))).toContain("another name");
  const old = issuer.issue(["127.0.0.1"], { from: daysFromNow(-9), to: daysFromNow(-1) });
  expect(await reason(engine(old))).toContain("expired");
  const strict = { ca: issuer.certificate, requestCert: true, rejectUnauthorized: true };
  expect(await reason(engine(own, strict))).toContain("tls.certificate_file");
});

test("a port without TLS, a name without an address, and a name of this machine", async () => {
  expect(await reason(engine(null))).toContain("write http://");
  expect(await reason("http://engine.invalid:8000/v1")).toContain("cannot be resolved here");
  const own = await addressesOf("gpubox", async () => ["127.0.1.1"]).catch((cause: unknown) => cause);
  expect(whyUnreached(new ConnectFailed(own), "")).toContain("write localhost or the address instead");
});

test("nothing to say of an engine that is not there, is silent, or answers meanwhile", async () => {
  expect(await reason("http://127.0.0.1:9/v1")).toBeNull();
  expect(whyUnreached(new ConnectFailed(null, true), "")).toBeNull();
  expect(whyUnreached(undefined, "")).toBeNull();
});
