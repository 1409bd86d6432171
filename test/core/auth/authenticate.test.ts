import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type AuthenticatorLimits, authenticator, requireScope } from "../../../src/core/auth/authenticate.ts";
import { hashKey, newKey } from "../../../src/core/auth/credential.ts";
import type { PeoplePolicy } from "../../../src/core/auth/verdict.ts";
import type { Fault, FaultCode } from "../../../src/core/inference/fault.ts";
import {
  type Credential,
  type Directory,
  type KeyPerson,
  type Scope,
  scopes,
  useNoted_ms,
} from "../../../src/core/store/directory.ts";
import { laterFaultOf } from "../../harness/faults.ts";
import { until } from "../../harness/until.ts";
import { activeCredential } from "./credentials.ts";

const start = Date.UTC(2026, 10, 21, 3);

/** An authenticator over a directory in memory, with its own clock; a test can hold back the directory's answers. */
function house(limits: Partial<AuthenticatorLimits> = {}, policy: PeoplePolicy | null = null) {
  const clock = { node_ms: 5000, store_ms: start };
  const rows = new Map<string, Credential>();
  const asked: string[] = [];
  const touched: string[][] = [];
  let before: () => Promise<void> = async () => {};
  let note: Directory["touch"] = async () => {};
  const directory: Directory = {
    async credential(hash) {
      asked.push(hash.toHex());
      const row = rows.get(hash.toHex());
      const credential = row ? { ...structuredClone(row), readAt: new Date(clock.store_ms) } : null;
      await before();
      return credential;
    },
    async touch(uses, how) {
      touched.push([...uses.keys()]);
      await note(uses, how);
    },
  };
  const auth = authenticator({ directory, now_ms: () => clock.node_ms, limits, policy: () => policy });
  let made = 0;
  return {
    auth,
    clock,
    directory,
    asked,
    touched,
    hold(gate: () => Promise<void>) {
      before = gate;
    },
    noting(write: Directory["touch"]) {
      note = write;
    },
    pass(ms: number) {
      clock.node_ms += ms;
      clock.store_ms += ms;
    },
    add(organizationId = "org_1") {
      const key = newKey(crypto.getRandomValues(new Uint8Array(64)));
      const row = activeCredential(new Date(start));
      row.key.id = `key_${++made}`;
      row.organization.id = organizationId;
      rows.set(hashKey(key).toHex(), row);
      return { key, row };
    },
    with: async (key: string, address = "192.0.2.1") =>
      auth.authenticate(new Headers({ authorization: `Bearer ${key}` }), address),
  };
}

const fault = async (work: Promise<unknown>) => (await laterFaultOf(work))!;

/** Begins a request whose look-up the directory answers only when the test lets it. */
async function underWay() {
  const it = house();
  const { key, row } = it.add();
  const gate = Promise.withResolvers<void>();
  it.hold(() => gate.promise);
  const first = it.with(key);
  await until(() => it.asked.length === 1);
  it.hold(async () => {});
  const answered = async () => {
    gate.resolve();
    await first;
  };
  return { it, key, row, answered };
}

describe("authentication", () => {
  test("answers who is calling", async () => {
    const it = house();
    const { key, row } = it.add();
    const secretHash = hashKey(key).toHex();
    expect(await it.with(key)).toEqual({
      ...{ key: row.key, organization: row.organization, person: null, rates: [], secretHash },
    });
  });

  test("answers at once who calls with a key that it remembers, and a refusal never is thrown at once", async () => {
    const it = house();
    const { key, row } = it.add();
    const headers = (key: string) => new Headers({ authorization: `Bearer ${key}` });
    const asked = it.auth.authenticate(headers(key), "192.0.2.1");
    expect(asked).toBeInstanceOf(Promise);
    const principal = await asked;
    expect(it.auth.authenticate(headers(key), "192.0.2.1")).toBe(principal);
    row.key.allowFrom = ["203.0.113.7"];
    it.auth.forget(row.key.id);
    for (const _ of ["looked up", "remembered"]) {
      const refused = it.auth.authenticate(headers(key), "192.0.2.1");
      expect((await fault(Promise.resolve(refused))).code).toBe("address_not_allowed");
    }
    const unknown = it.auth.authenticate(headers("slk_nothing"), "192.0.2.1");
    expect((await fault(Promise.resolve(unknown))).code).toBe("invalid_api_key");
  });

  test("refuses the key of a person who is suspended, was signed out, left, or is not confirmed any more", async () => {
    const it = house({}, { confirmedMax_ms: 1000, keysOfLeavers: "revoke" });
    const { key, row } = it.add();
    const rights = { scopes: [...scopes], models: null };
    const ann: KeyPerson = {
      ...{ id: "per_1", kind: "sign-in", suspendedAt: null, notBefore: null, rights },
      confirmedAt: new Date(start),
    };
    const refused = async (change: Partial<KeyPerson>) => {
      row.person = { ...ann, ...change };
      it.auth.forget("per_1");
      const { status, code } = await fault(it.with(key));
      return `${status} ${code}`;
    };
    row.secret.expiresAt = new Date(start + 60_000);
    row.person = ann;
    expect((await it.with(key)).person).toEqual({ id: "per_1", notBefore: null });
    expect(await refused({ suspendedAt: new Date(start) })).toBe("403 person_suspended");
    expect(await refused({ notBefore: new Date(start + 1) })).toBe("401 revoked_api_key");
    expect(await refused({ rights: null })).toBe("401 revoked_api_key");
    expect(await refused({ confirmedAt: new Date(start - 1000) })).toBe("401 expired_api_key");
    row.person = { ...ann, kind: "key", notBefore: new Date(start + 1) };
    it.auth.forget("per_1");
    expect((await it.with(key)).key.id).toBe(row.key.id);
  });

  test("lets a person's key have the models of both lists, whose names the catalog compares", async () => {
    const it = house();
    const { key, row } = it.add();
    row.key.models = ["a/new"];
    const ann = { id: "per_1", kind: "key", suspendedAt: null, notBefore: null, confirmedAt: new Date(start) } as const;
    row.person = { ...ann, rights: { scopes: [...scopes], models: ["a/former"] } };
    expect((await it.with(key)).key).toMatchObject({ models: ["a/new"], membershipModels: ["a/former"] });
  });

  test("asks the directory once a second for a key in use, once for requests at the same time", async () => {
    const it = house();
    const { key } = it.add();
    await Promise.all(Array.from({ length: 50 }, () => it.with(key)));
    expect(it.asked).toHaveLength(1);
    it.pass(999);
    await it.with(key);
    expect(it.asked).toHaveLength(1);
    it.pass(1);
    await it.with(key);
    expect(it.asked).toHaveLength(2);
  });

  test("a revoked key is refused within one second without any message", async () => {
    const it = house();
    const { key, row } = it.add();
    await it.with(key);
    row.key.revokedAt = new Date(start);
    it.pass(999);
    await it.with(key);
    it.pass(1);
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
  });

  test("a key with addresses is refused from any other, whoever asked before, and within one second of a change", async () => {
    const it = house();
    const { key, row } = it.add();
    row.key.allowFrom = ["192.0.2.0/24", "203.0.113.7", "2001:db8::/63"];
    const codeFrom = (address: string) =>
      it.with(key, address).then(
        () => "served",
        (thrown: Fault) => `${thrown.status} ${thrown.code}`,
      );
    const refused = "403 address_not_allowed";
    for (const [address, answer] of [
      ["192.0.2.1", "served"],
      ["198.51.100.1", refused],
      ["203.0.113.7", "served"],
      ["203.0.113.8", refused],
      ["2001:db8:0:1::/64", "served"],
      ["2001:db8:0:2::/64", refused],
      ["", refused],
      ["::ffff:0:0:0/64", refused],
    ] as const)
      expect([address, await codeFrom(address)]).toEqual([address, answer]);
    expect(it.asked).toHaveLength(1);
    row.key.allowFrom = ["198.51.100.1"];
    it.pass(1000);
    expect([await codeFrom("192.0.2.1"), await codeFrom("198.51.100.1")]).toEqual([refused, "served"]);
    // Only a request that was served counts as a use.
    await it.auth.stop();
    expect(it.touched).toEqual([["key_1"]]);
  });

  test("a slow answer is as old as its question", async () => {
    const { it, key, row, answered } = await underWay();
    row.key.revokedAt = new Date(start);
    it.pass(1000);
    // The first lookup was sent a second ago: the new request does not wait for it, and its answer is not cached.
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
    await answered();
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
    expect(it.asked).toHaveLength(2);
  });

  test("a slow answer is believed for what is left of the second since its question", async () => {
    const { it, key, row, answered } = await underWay();
    it.pass(900);
    row.key.revokedAt = new Date(start);
    await answered();
    it.pass(100);
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
  });

  test("a revocation message counts at once, for the key and for the organization", async () => {
    for (const change of ["key", "organization"] as const) {
      const it = house();
      const { key, row } = it.add();
      await it.with(key);
      if (change === "key") row.key.revokedAt = new Date(start);
      else row.organization.status = "suspended";
      it.auth.forget(row[change].id);
      const refused = await fault(it.with(key));
      expect(refused.code).toBe(change === "key" ? "revoked_api_key" : "organization_suspended");
      expect(refused.status).toBe(change === "key" ? 401 : 403);
    }
  });

  test("a message about one key leaves the others cached", async () => {
    const it = house();
    const [one, two] = [it.add("org_1"), it.add("org_2")];
    await Promise.all([it.with(one.key), it.with(two.key)]);
    it.auth.forget("org_1");
    await Promise.all([it.with(one.key), it.with(two.key)]);
    expect(it.asked).toHaveLength(3);
  });

  test("a look-up that was under way when the message came is not kept", async () => {
    const { it, key, row, answered } = await underWay();
    row.key.revokedAt = new Date(start);
    it.auth.forget(row.key.id);
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
    await answered();
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
  });

  test("of several reasons the first of the order answers", async () => {
    const it = house();
    const { key, row } = it.add();
    row.key.revokedAt = new Date(start);
    row.key.expiresAt = new Date(start - 1);
    row.organization.status = "suspended";
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
    row.key.revokedAt = null;
    it.pass(1000);
    expect((await fault(it.with(key))).code).toBe("expired_api_key");
    row.key.expiresAt = null;
    row.secret.revokedAt = new Date(start);
    it.pass(1000);
    expect((await fault(it.with(key))).code).toBe("revoked_api_key");
    row.secret.revokedAt = null;
    it.pass(1000);
    expect((await fault(it.with(key))).code).toBe("organization_suspended");
  });

  test("every 401 carries the challenge, tells what to do and never holds the key", async () => {
    const it = house();
    const { key, row } = it.add();
    const unknown = newKey(crypto.getRandomValues(new Uint8Array(64)));
    const seen = [await fault(it.with(unknown))];
    for (const change of [{ revokedAt: new Date(start) }, { expiresAt: new Date(start) }]) {
      Object.assign(row.secret, { revokedAt: null, expiresAt: null }, change);
      it.pass(1000);
      seen.push(await fault(it.with(key)));
    }
    expect(seen.map((one) => one.code)).toEqual(["invalid_api_key", "revoked_api_key", "expired_api_key"]);
    for (const one of seen) {
      expect(one.details.headers).toEqual({ "www-authenticate": "Bearer" });
      for (const secret of [key, unknown]) expect(Bun.inspect(one)).not.toContain(secret);
    }
  });

  test("a refusal is remembered for its second, as an admission is, and a message ends it", async () => {
    const over = new Date(start - 1);
    const changes: [FaultCode, (row: ReturnType<ReturnType<typeof house>["add"]>["row"], isOver: boolean) => void][] = [
      ["expired_api_key", ({ key }, isOver) => Object.assign(key, { expiresAt: isOver ? over : null })],
      ["expired_api_key", ({ secret }, isOver) => Object.assign(secret, { expiresAt: isOver ? over : null })],
      ["revoked_api_key", ({ secret }, isOver) => Object.assign(secret, { revokedAt: isOver ? over : null })],
      ["organization_suspended", (row, isOver) => (row.organization.status = isOver ? "suspended" : "active")],
    ];
    for (const [code, change] of changes) {
      const it = house();
      const { key, row } = it.add();
      change(row, true);
      for (let round = 0; round < 20; round++) expect((await fault(it.with(key))).code).toBe(code);
      it.pass(999);
      expect((await fault(it.with(key))).code).toBe(code);
      expect(it.asked).toHaveLength(1);
      it.pass(1);
      expect((await fault(it.with(key))).code).toBe(code);
      expect(it.asked).toHaveLength(2);
      change(row, false);
      it.auth.forget(row.key.id);
      await it.with(key);
    }
  });

  test("garbage never reaches the directory, and an unknown key reaches it once a second", async () => {
    const it = house();
    expect((await fault(it.with("garbage"))).code).toBe("invalid_api_key");
    expect(it.asked).toHaveLength(0);
    const unknown = newKey(crypto.getRandomValues(new Uint8Array(64)));
    for (let round = 0; round < 20; round++) expect((await fault(it.with(unknown))).code).toBe("invalid_api_key");
    expect(it.asked).toHaveLength(1);
  });

  test("a flood of guesses evicts no known key, and the caches stay bounded", async () => {
    const it = house({ cache_entries_max: 3 });
    const keys = Array.from({ length: 4 }, () => it.add().key);
    await it.with(keys[0]!);
    for (let round = 0; round < 20; round++) {
      await fault(it.with(newKey(crypto.getRandomValues(new Uint8Array(64)))));
    }
    const before = it.asked.length;
    await it.with(keys[0]!);
    expect(it.asked).toHaveLength(before);
    // The cache holds three keys: the key that was unused for longest is evicted.
    await it.with(keys[1]!);
    await it.with(keys[2]!);
    await it.with(keys[0]!);
    await it.with(keys[3]!);
    const after = it.asked.length;
    await it.with(keys[0]!);
    expect(it.asked).toHaveLength(after);
    await it.with(keys[1]!);
    expect(it.asked).toHaveLength(after + 1);
  });

  test("a store that fails, or does not answer, is a 503 to try again, and is asked anew by the next request", async () => {
    const it = house({ lookup_ms: () => 20 });
    const { key } = it.add();
    it.hold(() => Promise.reject(new Error("connection refused to db.internal")));
    const failed = await fault(it.with(key));
    expect([failed.code, failed.status, failed.details.retryAfterSeconds]).toEqual(["storage_unavailable", 503, 1]);
    expect(failed.message).not.toContain("db.internal");
    it.hold(() => new Promise(() => {}));
    expect((await fault(it.with(key))).code).toBe("storage_unavailable");
    it.hold(async () => {});
    it.pass(1000);
    await it.with(key);
  });

  test("too many look-ups at once are refused, not queued", async () => {
    const it = house({ lookups_max: 2 });
    const gate = Promise.withResolvers<void>();
    it.hold(() => gate.promise);
    const waiting = [it.with(it.add().key), it.with(it.add().key)];
    await until(() => it.asked.length === 2);
    expect((await fault(it.with(it.add().key))).code).toBe("overloaded");
    gate.resolve();
    await Promise.all(waiting);
    await it.with(it.add().key);
  });

  test("a missing scope is a 403 that names it", async () => {
    const it = house();
    const principal = await it.with(it.add().key);
    requireScope(principal, "models:read");
    for (const scope of ["inference:create", "usage:read"] satisfies Scope[]) {
      const refused = await fault(Promise.resolve().then(() => requireScope(principal, scope)));
      expect([refused.code, refused.status]).toEqual(["missing_scope", 403]);
      expect(refused.message).toContain(`'${scope}'`);
    }
  });
});

describe("last use", () => {
  test("is written in batches, once per key, and the rest when the service stops", async () => {
    const it = house({ touch_ms: 5 });
    const [one, two] = [it.add(), it.add()];
    await Promise.all([it.with(one.key), it.with(one.key), it.with(two.key)]);
    expect(it.touched).toHaveLength(0);
    await until(() => it.touched.length === 1);
    expect(it.touched[0]!.toSorted()).toEqual([one.row.key.id, two.row.key.id]);
    await it.with(one.key);
    await it.auth.stop();
    expect(it.touched[1]).toEqual([one.row.key.id]);
  });

  test("a failed write is tried again and fails no request", async () => {
    const it = house({ touch_ms: 5 });
    const { key, row } = it.add();
    const { touch } = it.directory;
    let failures = 0;
    it.directory.touch = async () => {
      failures++;
      throw new Error("away");
    };
    await it.with(key);
    await until(() => failures > 1);
    it.directory.touch = touch;
    await until(() => it.touched.length > 0);
    expect(it.touched).toEqual([[row.key.id]]);
    await it.auth.stop();
  });

  test("a refused request does not count as use", async () => {
    const it = house();
    const { key, row } = it.add();
    row.organization.status = "suspended";
    await fault(it.with(key));
    await it.auth.stop();
    expect(it.touched).toEqual([]);
  });
});

type Row = ReturnType<ReturnType<typeof house>["add"]>["row"];

test.each<[name: string, ends: (row: Row, at: Date) => void, says: string]>([
  ["a key that expires", ({ key }, at) => Object.assign(key, { expiresAt: at }), "has expired"],
  ["a secret that expires", ({ secret }, at) => Object.assign(secret, { expiresAt: at }), "rotated"],
  ["a key that ends by policy for its age", ({ ends }, at) => (ends.lifetimeAt = at), "is older than its organization"],
  ["a key that ends by policy for want of use", ({ ends }, at) => (ends.unusedAt = at), "was not used for longer than"],
])("%s is refused from its millisecond of the store's clock on, cached or not, and told why", async (_, ends, says) => {
  const it = house();
  const { key, row } = it.add();
  ends(row, new Date(start + 500));
  await it.with(key);
  it.pass(499);
  await it.with(key);
  it.pass(1);
  const refused = await fault(it.with(key));
  expect(refused.code).toBe("expired_api_key");
  expect(refused.message).toContain(says);
});

describe("a key that ends by policy", () => {
  const day_ms = 86_400_000;

  /**
   * A key that ends after `unusedMaxDays` days without use. Like the store, `counted` computes that end from the last
   * use that was written to it.
   */
  function policed(unusedMaxDays: number) {
    const at = house({ touch_ms: 3_600_000 });
    const { key, row } = at.add();
    const counted = () => {
      const last = row.key.lastUsedAt ?? new Date(start);
      row.ends.unusedAt = new Date(last.getTime() + unusedMaxDays * day_ms + useNoted_ms);
    };
    counted();
    return { ...at, key, row, counted };
  }

  test("has its use written down before it is served, once an hour, once for all that ask at the same time", async () => {
    const { with: use, key, row, counted, pass, noting, touched, auth, asked } = policed(1);
    const writes: (string | undefined)[] = [];
    const gate = Promise.withResolvers<void>();
    noting(async (_, how) => {
      writes.push(how);
      await gate.promise;
      row.key.lastUsedAt = new Date(start);
      counted();
    });
    let served = 0;
    const asking = Array.from({ length: 5 }, () => use(key).then(() => served++));
    await until(() => writes.length === 1);
    expect([served, writes]).toEqual([0, ["certain"]]);
    gate.resolve();
    await Promise.all(asking);
    await use(key);
    pass(useNoted_ms - 1);
    await use(key);
    expect(writes).toEqual(["certain"]);
    pass(1001);
    await use(key);
    expect([writes, touched.length]).toEqual([["certain", "certain"], 2]);
    expect(asked.length).toBeLessThan(6);
    await auth.stop();
  });

  test("is served where its use cannot be written in time, which is then tried again", async () => {
    const { with: use, key, noting, touched, auth } = policed(1);
    let isAway = true;
    noting(async () => {
      if (isAway) throw new Error("away");
    });
    expect((await use(key)).key.id).toBe("key_1");
    isAway = false;
    await auth.stop();
    expect(touched.length).toBe(2);
  });

  test("without such a policy nobody waits for a note", async () => {
    const { add, with: use, noting, auth } = house();
    const writes: (string | undefined)[] = [];
    noting(async (_, how) => void writes.push(how));
    await use(add().key);
    await auth.stop();
    expect(writes).toEqual([undefined]);
  });

  test("never ends within its days after a use, whatever notes are lost", async () => {
    const hours = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.boolean()), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(hours, async (uses) => {
        const { with: use, key, row, counted, pass, noting, clock } = policed(2);
        noting(async (_, how) => {
          // Uses that are not `certain` are written later in batches, which are lost if the node dies.
          if (how !== "certain") return;
          row.key.lastUsedAt = new Date(clock.store_ms);
          counted();
        });
        let last_ms = start;
        for (const [after, isShortly] of uses) {
          pass(isShortly ? after * 60_000 : after * 3_600_000);
          const idle_ms = clock.store_ms - last_ms;
          const isServed = await use(key).then(
            () => true,
            () => false,
          );
          if (idle_ms < 2 * day_ms) expect(isServed).toBeTrue();
          if (idle_ms >= 2 * day_ms + useNoted_ms) expect(isServed).toBeFalse();
          if (!isServed) return;
          last_ms = clock.store_ms;
        }
      }),
    );
  });
});
