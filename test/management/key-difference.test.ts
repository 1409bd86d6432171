/** A file of keys is compared with the keys that an organization has: only what differs is to be set. */
import { describe, expect, test } from "bun:test";
import { ManagementError } from "../../src/management/error.ts";
import { keyDifferences, type WantedKey } from "../../src/management/key-difference.ts";
import type { Key, Scope } from "../../src/store/directory.ts";

const now_ms = Date.parse("2026-11-23T00:00:00Z");

function key(id: string, change: Partial<Key> = {}): Key {
  return {
    id,
    organizationId: "org_1",
    name: "app",
    scopes: ["models:read", "inference:create"],
    allowedModels: null,
    createdAt: new Date(0),
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    lastUsedFrom: null,
    createdBy: null,
    owner: null,
    labels: {},
    allowedAddresses: null,
    state: "active",
    endsAt: null,
    version: 3,
    secrets: [],
    ...change,
  };
}

const difference = (wanted: WantedKey, ...existing: Key[]) => keyDifferences("acme", [wanted], existing, now_ms);

describe("a wanted key", () => {
  test("that is not there is to be made, also where one of its name was revoked", () => {
    const made = [
      { slug: "acme", key: null, wanted: { name: "app" }, changed: [{ field: "key", from: null, to: "app" }] },
    ];
    expect(difference({ name: "app" })).toEqual(made);
    expect(difference({ name: "app" }, key("key_1", { name: "other" }))).toEqual(made);
    expect(difference({ name: "app" }, key("key_1", { state: "revoked" }))).toEqual(made);
  });

  test("is the one of its name that is not revoked, and its revoked namesakes stand in nobody's way", () => {
    const revoked = [key("key_1", { state: "revoked" }), key("key_3", { state: "revoked" })];
    const [one] = difference({ name: "app", owner: "ops" }, revoked[0]!, key("key_2"), revoked[1]!);
    expect(one).toMatchObject({
      key: { id: "key_2", version: 3 },
      changed: [{ field: "owner", from: null, to: "ops" }],
    });
  });

  test("that has expired is still the one of its name", () => {
    expect(difference({ name: "app", owner: "ops" }, key("key_1", { state: "expired" }))[0]!.key!.id).toBe("key_1");
  });

  test("whose name two keys have is refused", () => {
    expect(() => difference({ name: "app" }, key("key_1"), key("key_2"))).toThrow("2 keys 'app'");
  });

  test("that is as it should be is no difference, however that is written", () => {
    const expiresAt = new Date("2026-12-31T00:00:00Z");
    const is = key("key_1", { owner: "ops", labels: { a: "1", b: "2" }, expiresAt });
    const wanted = {
      name: "app",
      scopes: ["inference:create", "models:read"] satisfies Scope[] as Scope[],
      owner: " ops ",
      labels: { b: "2" },
      expires: "2026-12-31",
      models: null,
    };
    expect(difference(wanted, is)).toEqual([]);
  });

  test("is compared field by field, under the names of the interfaces", () => {
    const wanted = { name: "app", models: ["acme/writer-1"], expires: "2027-01-01", addresses: ["192.0.2.0/24"] };
    const [one] = difference(wanted, key("key_1"));
    expect(one!.changed).toEqual([
      { field: "allowed_models", from: null, to: ["acme/writer-1"] },
      { field: "expires_at", from: null, to: new Date("2027-01-01T00:00:00Z") },
      { field: "allowed_addresses", from: null, to: ["192.0.2.0/24"] },
    ]);
    expect(one!.wanted).toEqual(wanted);
  });

  test("may name an expiry that has passed only where the key has it already", () => {
    const expires = "2026-11-01T00:00:00Z";
    expect(difference({ name: "app", expires }, key("key_1", { expiresAt: new Date(expires) }))).toEqual([]);
    expect(() => difference({ name: "app", expires }, key("key_1"))).toThrow(ManagementError);
    expect(() => difference({ name: "app", expires })).toThrow(ManagementError);
  });
});
