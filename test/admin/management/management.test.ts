import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { management } from "../../../src/admin/management/client.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { type VerbName, verbs } from "../../../src/admin/management/verbs.ts";
import { authenticator } from "../../../src/core/auth/authenticate.ts";
import { isKey } from "../../../src/core/auth/credential.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { memoryDirectory } from "../../core/auth/memory-directory.ts";
import { emptyLedger, plansNamed } from "./empty-ledger.ts";
import { listKeys, listOrganizations } from "./lists.ts";

function setup() {
  const directory = memoryDirectory();
  const told: string[] = [];
  const manage = management({
    administration: directory,
    ...emptyLedger(),
    catalog: () => ({
      plans: plansNamed("starter", "pro"),
      models: ["acme/writer-1", "acme/painter-1"],
      upstreams: ["gpu-1"],
      billing: { currency: "USD", provider: "Sluice" },
    }),
    actor: "cli:test",
    now_ms: () => directory.clock.now_ms,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    changed: (id) => void told.push(id),
  });
  const auth = authenticator({ directory, now_ms: () => directory.clock.now_ms, limits: { cache_ms: 0 } });
  return {
    directory,
    manage,
    told,
    pass: (ms: number) => {
      directory.clock.now_ms += ms;
    },
    /** The outcome of a request with this key: `ok`, or the fault's code. */
    async use(secret: string | null): Promise<string> {
      try {
        await auth.authenticate(new Headers({ authorization: `Bearer ${secret}` }), "192.0.2.1");
        return "ok";
      } catch (thrown) {
        if (thrown instanceof Fault) return thrown.code;
        throw thrown;
      }
    },
  };
}

/** Like `setup`, with the organization `acme`. */
async function acme() {
  const it = setup();
  await it.manage.createOrganization({ slug: "acme" });
  return it;
}

/** Like `acme`, with a key of the organization. */
async function keyed() {
  const it = await acme();
  return { ...it, first: await it.manage.createKey({ organization: "acme", name: "app" }) };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown.message;
    throw thrown;
  }
  throw new Error("was accepted");
}

describe("organizations", () => {
  test("one is made with its slug, name and plan, or with starter and its slug as name", async () => {
    const { manage } = setup();
    const acme = await manage.createOrganization({ slug: "acme" });
    expect(acme).toMatchObject({ slug: "acme", name: "acme", plan: "starter", status: "active" });
    expect(acme.id).toMatch(/^org_[0-9a-f]{32}$/);
    const named = await manage.createOrganization({ slug: "b-2", name: " Büro 2 ", plan: "pro" });
    expect(named).toMatchObject({ slug: "b-2", name: "Büro 2", plan: "pro" });
    expect(await manage.findOrganization({ organization: named.id })).toEqual({ ...named, standing: null });
    expect(await manage.findOrganization({ organization: "b-2" })).toEqual({ ...named, standing: null });
    expect(await listOrganizations(manage)).toHaveLength(2);
  });

  test("a slug that is none, or that is taken, is refused", async () => {
    const { manage } = await acme();
    expect(await refusal(manage.createOrganization({ slug: "acme" }))).toContain("already exists");
    for (const slug of ["", " ", "Acme", "a_b", "-a", "a-", "a b", "é", "a".repeat(64), "a\nb", "x".repeat(10_000)]) {
      expect((await refusal(manage.createOrganization({ slug }))).length).toBeLessThan(300);
    }
    expect(await manage.createOrganization({ slug: "a".repeat(63) })).toMatchObject({ slug: "a".repeat(63) });
  });

  test("suspending stops its keys and resuming gives them back; either twice is as once", async () => {
    const { manage, use, told } = setup();
    const { id } = await manage.createOrganization({ slug: "acme" });
    const { key: secret } = await manage.createKey({ organization: "acme", name: "app" });
    for (let round = 0; round < 2; round++) {
      expect((await manage.suspendOrganization({ organization: "acme" })).status).toBe("suspended");
      expect(await use(secret)).toBe("organization_suspended");
    }
    for (let round = 0; round < 2; round++) {
      expect((await manage.resumeOrganization({ organization: id })).status).toBe("active");
      expect(await use(secret)).toBe("ok");
    }
    expect(told).toEqual([id, id]);
    expect(await refusal(manage.suspendOrganization({ organization: "nobody" }))).toContain("sluice org list");
  });
});

describe("keys", () => {
  test("a new key works, has all scopes and models, and its secret is in no other answer", async () => {
    const { manage, use } = setup();
    const organization = await manage.createOrganization({ slug: "acme" });
    const made = await manage.createKey({ organization: "acme", name: "app" });
    expect(made).toMatchObject({
      organizationId: organization.id,
      name: "app",
      scopes: ["models:read", "inference:create", "usage:read"],
      models: null,
      expiresAt: null,
    });
    expect(made.id).toMatch(/^key_[0-9a-f]{32}$/);
    expect(isKey(made.key!)).toBe(true);
    expect(await use(made.key!)).toBe("ok");
    const shown = await Promise.all([listKeys(manage), manage.findKey({ id: made.id }), manage.pageAudit()]);
    expect(JSON.stringify(shown)).not.toContain(made.key!);
    expect(shown[0][0]?.secrets[0]).toMatchObject({
      prefix: made.key!.slice(0, 8),
      suffix: made.key!.slice(-4),
    });
  });

  test("scopes and models are a set, and names that do not exist are refused", async () => {
    const { manage } = await acme();
    const key = { organization: "acme", name: "app" };
    const made = await manage.createKey({
      ...key,
      scopes: ["usage:read", " models:read" as "models:read", "usage:read"],
      models: ["acme/painter-1", "acme/painter-1"],
    });
    expect(made).toMatchObject({ scopes: ["models:read", "usage:read"], models: ["acme/painter-1"] });
    expect(await refusal(manage.createKey({ ...key, scopes: ["admin" as never] }))).toContain(
      "'models:read', 'inference:create'",
    );
    expect(await refusal(manage.createKey({ ...key, scopes: [] }))).toContain("of 1 to 10 items");
    expect(await refusal(manage.createKey({ ...key, models: ["writer-1"] }))).toContain("acme/writer-1");
    expect(await refusal(manage.createKey({ ...key, models: [""] }))).toContain("at least one character");
    expect(await refusal(manage.createKey({ ...key, organization: "nobody" }))).toContain("no organization");
    expect(await listKeys(manage)).toHaveLength(1);
  });

  test("a name is one line of up to 200 characters", async () => {
    const { manage } = await acme();
    for (const name of ["", "   ", "a\nb", "a\u2028b", "a\u0000", "x".repeat(201), "\ud800"]) {
      await refusal(manage.createKey({ organization: "acme", name }));
    }
    expect(await manage.createKey({ organization: "acme", name: "名前 🔑" })).toMatchObject({
      name: "名前 🔑",
    });
  });

  test("an expiry is an instant to come, with a zone", async () => {
    const { manage, use, pass } = await acme();
    const create = (expires: string) => manage.createKey({ organization: "acme", name: "app", expiresAt: expires });
    const at = async (expires: string) => (await create(expires)).expiresAt?.toISOString();
    expect(await at("2027-01-31")).toBe("2027-01-31T00:00:00.000Z");
    expect(await at("2027-01-31T12:00:00Z")).toBe("2027-01-31T12:00:00.000Z");
    expect(await at("2027-01-31t12:00:00.5z")).toBe("2027-01-31T12:00:00.500Z");
    expect(await at("2027-01-31 12:00+0200")).toBe("2027-01-31T10:00:00.000Z");
    expect(await at("2028-02-29T00:00:00-05:30")).toBe("2028-02-29T05:30:00.000Z");
    const wrong = [
      "",
      "soon",
      "2027-02-29",
      "2027-02-30T00:00:00Z",
      "2027-13-01",
      "2027-01-31T25:00:00Z",
      "1800000000",
    ];
    for (const expires of [...wrong, "2027-01-31T12:00:00", "31.1.2027"]) await refusal(create(expires));
    expect(await refusal(create("2026-11-21T03:00:00Z"))).toContain("in the past");
    const { key: secret } = await create("2026-11-21T03:00:01Z");
    pass(999);
    expect(await use(secret)).toBe("ok");
    pass(1);
    expect(await use(secret)).toBe("expired_api_key");
  });

  test("rotation keeps the id, gives a second secret, and leaves the old one working for a day, or until it is revoked", async () => {
    const { manage, use, pass, first } = await keyed();
    const second = await manage.rotateKey({ id: first.id });
    expect(second.id).toBe(first.id);
    expect(second.key!).not.toBe(first.key!);
    pass(86_400_000 - 1);
    expect([await use(first.key!), await use(second.key!)]).toEqual(["ok", "ok"]);
    const third = await manage.rotateKey({ id: first.id, grace: null });
    pass(1);
    expect([await use(first.key!), await use(second.key!)]).toEqual(["expired_api_key", "ok"]);
    pass(86_400_000);
    expect([await use(second.key!), await use(third.key!)]).toEqual(["expired_api_key", "ok"]);
  });

  test("what a rotation replaced is revoked by itself", async () => {
    const { manage, use, told, first } = await keyed();
    const second = await manage.rotateKey({ id: first.id });
    await manage.revokeKey({ id: first.id, old: true });
    expect([await use(first.key!), await use(second.key!)]).toEqual(["revoked_api_key", "ok"]);
    expect(told).toEqual([first.id, first.id]);
  });

  test("a grace period ends to the millisecond", async () => {
    const { manage, use, pass } = await acme();
    for (const [grace, ms] of [
      ["30s", 30_000],
      ["30m", 1_800_000],
      ["1h", 3_600_000],
      ["7d", 604_800_000],
    ] as const) {
      const first = await manage.createKey({ organization: "acme", name: grace });
      const second = await manage.rotateKey({ id: first.id, grace });
      pass(ms - 1);
      expect([await use(first.key!), await use(second.key!)]).toEqual(["ok", "ok"]);
      pass(1);
      expect([await use(first.key!), await use(second.key!)]).toEqual(["expired_api_key", "ok"]);
    }
  });

  test("a grace that is none is refused, and nothing is rotated", async () => {
    const { manage } = await acme();
    const key = await manage.createKey({ organization: "acme", name: "app" });
    for (const grace of ["", "1", "h", "-1h", "1.5h", "1w", "366d", "9999999999d", "1h 30m"]) {
      await refusal(manage.rotateKey({ id: key.id, grace }));
    }
    expect((await manage.findKey({ id: key.id })).secrets).toHaveLength(1);
  });

  test("revoking ends every secret, twice is as once, and a revoked or expired key cannot be rotated", async () => {
    const { manage, use, pass, first } = await keyed();
    const second = await manage.rotateKey({ id: first.id });
    const revoked = await manage.revokeKey({ id: first.id });
    pass(1000);
    expect(await manage.revokeKey({ id: first.id })).toEqual(revoked);
    expect([await use(first.key!), await use(second.key!)]).toEqual(["revoked_api_key", "revoked_api_key"]);
    expect(await refusal(manage.rotateKey({ id: first.id }))).toContain("revoked");
    const short = await manage.createKey({ organization: "acme", name: "short", expiresAt: "2026-11-22" });
    pass(86_400_000);
    expect(await refusal(manage.rotateKey({ id: short.id }))).toContain("expired");
  });

  test("a key named by its secret is refused without repeating it", async () => {
    const { manage } = await acme();
    const { key: secret } = await manage.createKey({ organization: "acme", name: "app" });
    for (const act of [manage.findKey, manage.rotateKey, manage.revokeKey]) {
      const message = await refusal(act({ id: secret! }));
      expect(message).toContain("key_");
      expect(message).not.toContain(secret!.slice(4, 20));
    }
    expect(await refusal(manage.findKey({ id: "key_0" }))).toContain("sluice key list");
  });

  test("a change succeeds although a node cannot be informed of it", async () => {
    const directory = memoryDirectory();
    const manage = management({
      administration: directory,
      ...emptyLedger(),
      catalog: () => ({
        plans: plansNamed("starter"),
        models: [],
        upstreams: [],
        billing: { currency: "USD", provider: "Sluice" },
      }),
      actor: "cli:test",
      now_ms: () => directory.clock.now_ms,
      newUuid: () => Bun.randomUUIDv7(),
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      changed: () => Promise.reject(new Error("the node is away")),
    });
    await manage.createOrganization({ slug: "acme" });
    expect((await manage.suspendOrganization({ organization: "acme" })).status).toBe("suspended");
  });
});

test("whatever comes in as an argument, the answer is a value or a refusal", async () => {
  const { manage } = setup();
  await manage.createOrganization({ slug: "acme" });
  const word = fc.oneof(fc.anything(), fc.constantFrom("acme", "app", "1h", "2030-01-01", "starter"));
  const argument = fc.dictionary(
    fc.constantFrom(
      "organization",
      "slug",
      "name",
      "plan",
      "scopes",
      "models",
      "expiresAt",
      "id",
      "grace",
      "old",
      "limit",
      "team",
      "limits",
      "keyLimits",
    ),
    word,
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...verbs.map(({ name }) => name as VerbName)), argument, async (verb, input) => {
      try {
        await (manage[verb] as (input: unknown) => Promise<unknown>)(input);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(ManagementError);
        expect((thrown as ManagementError).message).not.toContain("\n");
      }
    }),
    { numRuns: 500 },
  );
});
