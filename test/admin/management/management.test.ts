import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { client, direct } from "../../../src/admin/management/client.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { type VerbName, verbs } from "../../../src/admin/management/verbs.ts";
import { memoryDirectory } from "../../core/auth/memory-directory.ts";
import { memoryContext } from "./empty-ledger.ts";
import { listKeys } from "./lists.ts";

function setup() {
  const directory = memoryDirectory();
  return { directory, manage: client(direct(memoryContext(directory, { changed: () => {} }))) };
}

/** Does the same as `setup`, and creates the organization `acme`. */
async function acme() {
  const it = setup();
  await it.manage.createOrganization({ slug: "acme" });
  return it;
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
  test("a slug that is none, or that is taken, is refused", async () => {
    const { manage } = await acme();
    expect(await refusal(manage.createOrganization({ slug: "acme" }))).toContain("already exists");
    for (const slug of ["", " ", "Acme", "a_b", "-a", "a-", "a b", "é", "a".repeat(64), "a\nb", "x".repeat(10_000)]) {
      expect((await refusal(manage.createOrganization({ slug }))).length).toBeLessThan(300);
    }
    expect(await manage.createOrganization({ slug: "a".repeat(63) })).toMatchObject({ slug: "a".repeat(63) });
  });
});

describe("keys", () => {
  test("scopes and models are a set, and names that do not exist are refused", async () => {
    const { manage } = await acme();
    const key = { organization: "acme", name: "app" };
    const made = await manage.createKey({
      ...key,
      scopes: ["usage:read", " models:read" as "models:read", "usage:read"],
      models: ["acme/painter-1", "acme/painter-1"],
    });
    expect(made).toMatchObject({ scopes: ["models:read", "usage:read"], models: ["acme/painter-1"] });
    expect(await refusal(manage.createKey({ ...key, models: ["writer-1"] }))).toContain("acme/writer-1");
    expect(await refusal(manage.createKey({ ...key, models: [""] }))).toContain("at least one character");
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

  test("a key that has expired cannot be rotated", async () => {
    const { directory, manage } = await acme();
    const { id } = await manage.createKey({ organization: "acme", name: "short", expiresAt: "2026-11-22" });
    directory.clock.now_ms += 86_400_000;
    expect(await refusal(manage.rotateKey({ id }))).toContain("expired");
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
    const changed = () => Promise.reject(new Error("the node is away"));
    const manage = client(direct(memoryContext(memoryDirectory(), { changed })));
    await manage.createOrganization({ slug: "acme" });
    expect((await manage.suspendOrganization({ organization: "acme" })).status).toBe("suspended");
  });
});

test("whatever comes in as an argument, the answer is a value or a refusal", async () => {
  const { manage } = setup();
  await manage.createOrganization({ slug: "acme" });
  const word = fc.oneof(fc.anything(), fc.constantFrom("acme", "app", "1h", "2030-01-01", "starter"));
  const asked = fc
    .constantFrom(...verbs)
    .chain(({ name, input }) =>
      fc.tuple(
        fc.constant(name as VerbName),
        fc.dictionary(fc.constantFrom("stray", ...Object.keys(input.properties)), word),
      ),
    );
  await fc.assert(
    fc.asyncProperty(asked, async ([verb, input]) => {
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
