// The discovery document of an issuer is cached for ten minutes, and the finding that the issuer is down for two
// seconds.
import { expect, test } from "bun:test";
import type { Issuer } from "../../../src/core/auth/identity.ts";
import { IssuerAway, issuerClients } from "../../../src/features/identity/issuer-clients.ts";

test("an issuer is asked again after two seconds if it was away, and after ten minutes else", async () => {
  let looks = 0;
  let isAway = true;
  let issuer = "";
  await using ending = new AsyncDisposableStack();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(): Response {
      looks += 1;
      if (isAway) return new Response(null, { status: 503 });
      return Response.json({ issuer, jwks_uri: `${issuer}/keys`, token_endpoint: `${issuer}/token` });
    },
  });
  ending.defer(() => server.stop(true));
  issuer = `http://127.0.0.1:${server.port}`;
  let now_ms = 0;
  const clients = issuerClients({ now_ms: () => now_ms });
  const known = () => clients.of({ issuer, clientId: "sluice", clientSecret: null } as Issuer);
  await expect(known()).rejects.toThrow(IssuerAway);
  isAway = false;
  now_ms = 1_999;
  await expect(known()).rejects.toThrow(IssuerAway);
  expect(looks).toBe(1);
  now_ms = 2_000;
  const first = await known();
  now_ms += 10 * 60_000 - 1;
  expect(await known()).toBe(first);
  expect(looks).toBe(2);
  now_ms += 1;
  expect(await known()).not.toBe(first);
  expect(looks).toBe(3);
});
