// A flood of requests for device codes (OAuth) without credentials, each of which runs a statement in the database.
import { expect, test } from "bun:test";
import { oauthOperations } from "../../../src/admin/people/oauth.ts";
import { unknownCredentialLimits, unknownCredentials } from "../../../src/core/auth/unknown-credentials.ts";
import type { Call } from "../../../src/core/http/call.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import type { IdentityParts } from "../../../src/features/identity/identity.ts";
import { settingsOf } from "../../harness/identity-parts.ts";

test("an address that is refused codes of devices is soon refused without asking the database, and others get theirs", async () => {
  const identity = settingsOf([{ issuer: "https://login.example" } as never]);
  let asked = 0;
  const devices = {
    async add({ address }: { address: string }) {
      asked++;
      return address === "192.0.2.1" ? "full" : "added";
    },
  };
  let now_ms = 0;
  const unknown = unknownCredentials(unknownCredentialLimits, () => now_ms);
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  const parts = { identity: () => identity, devices, unknown, random } as unknown as IdentityParts;
  const operation = oauthOperations(parts).find(({ operationId }) => operationId === "authorizeDevice")!;
  const authorize = async (client: string) => {
    const request = new Request("http://127.0.0.1:1/oauth/device_authorization", { method: "POST" });
    const call = { request, client, bodyRead() {} } as unknown as Call;
    return (await operation.handle({} as Dependencies, call, {} as never)) as Response;
  };
  const budget = unknownCredentialLimits.failures_of_one_address_per_minute;
  for (let count = 0; count < budget + 100; count++) {
    now_ms += 20;
    expect((await authorize("192.0.2.1")).status).toBe(429);
  }
  const refilled = ((budget + 100) * 20 * budget) / 60_000;
  expect(asked).toBeLessThanOrEqual(budget + refilled);
  expect((await authorize("192.0.2.2")).status).toBe(200);
});
