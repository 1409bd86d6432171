import { describe, expect, test } from "bun:test";
import { type AuthenticatorLimits, authenticator } from "../../../src/core/auth/authenticate.ts";
import { hashKey, key_random_bytes, newKey } from "../../../src/core/auth/credential.ts";
import { SlowRefusal } from "../../../src/core/auth/unknown-credentials.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { until } from "../../harness/until.ts";
import { activeCredential } from "./credentials.ts";

const made = () => newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)));

/**
 * An authenticator over a directory that knows some keys. A test can hold back the directory's answers about all other
 * keys.
 */
function house(limits: Partial<AuthenticatorLimits> = {}, isHinted = (_hash: string) => false) {
  const real = new Set<string>();
  const state = { now_ms: 0, asked: 0, waiting: 0 };
  let gate: Promise<void> | null = null;
  const auth = authenticator({
    directory: {
      async credential(hash) {
        state.asked++;
        const isReal = real.has(hash.toHex());
        if (!isReal && gate) {
          state.waiting++;
          await gate;
          state.waiting--;
        }
        return isReal ? activeCredential(new Date(0)) : null;
      },
      async touch() {},
    },
    existing: { has: (hash) => isHinted(hash.toHex()), add: () => {} },
    now_ms: () => state.now_ms,
    limits,
  });
  return {
    auth,
    state,
    hold(until: Promise<void> | null) {
      gate = until;
    },
    add() {
      const key = made();
      real.add(hashKey(key).toHex());
      return key;
    },
    /** Returns `ok`, or the code of the refusal, with `slow` before it if the refusal is to be sent slowly. */
    async with(key: string, address = "192.0.2.1"): Promise<string> {
      try {
        await auth.authenticate(new Headers({ authorization: `Bearer ${key}` }), address);
        return "ok";
      } catch (thrown) {
        if (!(thrown instanceof Fault)) throw thrown;
        return thrown instanceof SlowRefusal ? `slow ${thrown.code}` : thrown.code;
      }
    },
  };
}

describe("look-ups of unknown keys", () => {
  test("are so many at a time, and a known key does not wait for them", async () => {
    const it = house({ unknown_lookups_max: 2 });
    const known = it.add();
    expect(await it.with(known)).toBe("ok");
    const gate = Promise.withResolvers<void>();
    it.hold(gate.promise);
    const forged = Array.from({ length: 10 }, () => it.with(made()));
    await until(() => it.state.waiting === 2);
    it.state.now_ms += 1000;
    expect(await it.with(known)).toBe("ok");
    expect(it.state.waiting).toBe(2);
    gate.resolve();
    expect(await Promise.all(forged)).toEqual(Array(10).fill("invalid_api_key"));
    expect(it.state.asked).toBe(12);
  });

  test("that find nothing are so many a second; one that finds a key costs nothing", async () => {
    const it = house({ fruitless_lookups: { burst: 3, per_second: 2 } });
    for (let i = 0; i < 10; i++) expect(await it.with(it.add())).toBe("ok");
    for (let i = 0; i < 3; i++) expect(await it.with(made())).toBe("invalid_api_key");
    const asked = it.state.asked;
    for (let i = 0; i < 5; i++) expect(await it.with(made(), `198.51.100.${i}`)).toBe("slow overloaded");
    expect(it.state.asked).toBe(asked);
    it.state.now_ms += 500;
    expect(await it.with(it.add())).toBe("ok");
    expect(await it.with(made())).toBe("invalid_api_key");
  });

  test("that the store fails cost the unknown keys nothing", async () => {
    const it = house({ fruitless_lookups: { burst: 1, per_second: 0.001 } });
    it.hold(Promise.reject(new Error("away")));
    for (let i = 0; i < 3; i++) expect(await it.with(made())).toBe("storage_unavailable");
    it.hold(null);
    expect(await it.with(it.add())).toBe("ok");
  });

  test("are not for a key that was announced, on whatever node it was made", async () => {
    const it = house({ fruitless_lookups: { burst: 1, per_second: 0.001 } });
    expect(await it.with(made())).toBe("invalid_api_key");
    const key = it.add();
    expect(await it.with(key)).toBe("slow overloaded");
    it.auth.forget("key_1", hashKey(key).toHex());
    expect(await it.with(key)).toBe("ok");
  });

  test("are not for a key whose organization changed: it is still known", async () => {
    const it = house({ fruitless_lookups: { burst: 1, per_second: 0.001 } });
    const key = it.add();
    expect(await it.with(key)).toBe("ok");
    expect(await it.with(made())).toBe("invalid_api_key");
    it.auth.forget("org_1");
    const asked = it.state.asked;
    expect(await it.with(key)).toBe("ok");
    expect(it.state.asked).toBe(asked + 1);
  });
});

describe("a key that is hinted to exist", () => {
  const limits = { fruitless_lookups: { burst: 1, per_second: 0.001 }, failures_of_one_address_per_minute: 2 };

  test("is looked up outside all bounds at its first use", async () => {
    const hinted = new Set<string>();
    const it = house({ ...limits, unknown_lookups_max: 1 }, (hash) => hinted.has(hash));
    expect(await it.with(made())).toBe("invalid_api_key");
    expect(await it.with(made())).toBe("slow overloaded");
    for (let i = 0; i < 3; i++) await it.with("garbage");
    expect(await it.with(made())).toBe("slow rate_limit_exceeded");
    const key = it.add();
    expect(await it.with(key)).toBe("slow rate_limit_exceeded");
    hinted.add(hashKey(key).toHex());
    expect(await it.with(key)).toBe("ok");
  });

  test("is refused if the directory does not know it", async () => {
    const it = house(limits, () => true);
    expect(await it.with(made())).toBe("invalid_api_key");
    expect(it.state.asked).toBe(1);
  });

  test("may be new to everybody: what is announced is added", async () => {
    const added: string[] = [];
    const auth = authenticator({
      directory: { credential: async () => null, touch: async () => {} },
      existing: { has: () => false, add: (hash) => added.push(hash.toHex()) },
      now_ms: () => 0,
    });
    auth.forget("key_1", hashKey(made()).toHex());
    auth.forget("key_1");
    expect(added).toHaveLength(1);
  });
});

describe("failures of one address", () => {
  const limits = { failures_of_one_address_per_minute: 6 };

  test("are so many a minute, whatever was wrong; then its unknown keys are refused unseen", async () => {
    const it = house(limits);
    const known = it.add();
    expect(await it.with(known)).toBe("ok");
    for (let i = 0; i < 3; i++) expect(await it.with(made())).toBe("invalid_api_key");
    for (let i = 0; i < 3; i++) expect(await it.with("garbage")).toBe("invalid_api_key");
    const asked = it.state.asked;
    expect(await it.with(made())).toBe("slow rate_limit_exceeded");
    expect(await it.with("garbage")).toBe("slow rate_limit_exceeded");
    expect(it.state.asked).toBe(asked);
    // A known key is still served, and so is every other address.
    expect(await it.with(known)).toBe("ok");
    expect(await it.with(made(), "192.0.2.2")).toBe("invalid_api_key");
    it.state.now_ms += 10_000;
    expect(await it.with(made())).toBe("invalid_api_key");
    expect(await it.with(made())).toBe("slow rate_limit_exceeded");
  });

  test("a valid key is no failure, and neither is a suspended organization", async () => {
    const it = house(limits);
    for (let i = 0; i < 20; i++) expect(await it.with(it.add())).toBe("ok");
    expect(await it.with(made())).toBe("invalid_api_key");
  });

  test("are remembered of so many addresses", async () => {
    const it = house({ ...limits, addresses_max: 2, failures_of_one_address_per_minute: 1 });
    expect(await it.with(made(), "a")).toBe("invalid_api_key");
    expect(await it.with(made(), "a")).toBe("slow rate_limit_exceeded");
    for (const address of ["b", "c"]) expect(await it.with(made(), address)).toBe("invalid_api_key");
    // The address that failed longest ago is forgotten, and no other.
    for (const address of ["b", "c"]) expect(await it.with(made(), address)).toBe("slow rate_limit_exceeded");
    expect(await it.with(made(), "a")).toBe("invalid_api_key");
  });
});

test("keys that do not exist are remembered, so many of them, and as long as that is believed", async () => {
  const it = house({ cache_entries_max: 3, fruitless_lookups: { burst: 100, per_second: 1 } });
  for (let i = 0; i < 10; i++) await it.with(made());
  expect(it.auth.absent()).toBe(3);
  it.state.now_ms += 1000;
  await it.with(made());
  expect(it.auth.absent()).toBe(1);
});
