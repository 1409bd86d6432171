import type { Credential } from "../../../src/core/store/directory.ts";

/** An active key of an active organization, which was made and read at this instant. */
export function activeCredential(at: Date): Credential {
  return {
    key: {
      id: "key_1",
      name: "test",
      scopes: ["models:read"],
      models: null,
      allowFrom: null,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    },
    secret: { createdAt: at, expiresAt: null, revokedAt: null },
    ends: { lifetimeAt: null, unusedAt: null },
    person: null,
    organization: { id: "org_1", slug: "acme", name: "Acme", status: "active", plan: "pro", keepsContent: true },
    rates: [],
    readAt: at,
  };
}
