// Which interface accepts which credential: the credential's prefix and the kind in its row decide. Changing a row by
// hand makes no other interface accept the credential.
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { authenticator } from "../../../src/core/auth/authenticate.ts";
import { hashKey, key_random_bytes, newKey, type SecretKind, secretOf } from "../../../src/core/auth/credential.ts";
import { unknownCredentialLimits } from "../../../src/core/auth/unknown-credentials.ts";
import { encode } from "../../../src/core/schema/codec.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { bare, idOf } from "../../../src/core/store/ids.ts";
import { operatorAuthentication } from "../../../src/features/identity/operator.ts";
import { Operator } from "../../../src/features/identity/store/operators.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { signIns } from "../../../src/stores/postgres/sign-ins.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { newMember } from "../../harness/members.ts";
import { databaseForTests } from "../../stores/postgres/databases.ts";
import { addKey, addOrganization } from "./made.ts";

setDefaultTimeout(120_000);
const actor = "cli:test";

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  let made: Record<"key" | "sign-in" | "jwt", { id: string; hash: Uint8Array }>;
  let texts: Record<"key" | "sign-in" | "operator", string>;
  const secret = (prefix: SecretKind) => newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)), prefix);
  const newId = (prefix: string) => idOf(Bun.randomUUIDv7(), prefix as "key_");

  beforeAll(async () => {
    const admin = administration(db);
    texts = { key: secret("slk_"), "sign-in": secret("slt_"), operator: secret("slo_") };
    const { id: organizationId } = await addOrganization(db, { slug: "acme" });
    const personId = await newMember(db, "ann", { organization: "acme" });
    const { id: key } = await addKey(db, organizationId, { secret: secretOf(texts.key) });
    const signIn = newId("key_");
    await signIns(db).begin({
      ...{ keyId: signIn, personId, organizationId, teamId: null, scopes: [...scopes], models: null },
      ...{ issuer: "https://login.example", issuerSession: "s1", tokens: new Uint8Array([1]), lasts_ms: null },
      ...{ agent: "sluice", address: "192.0.2.1", refreshHash: hashKey(secret("slr_")) },
      access: { secret: secretOf(texts["sign-in"]), lasts_ms: 3_600_000 },
    });
    const jwt = (await people(db).tokenKey({ id: newId("key_"), personId, organization: "acme" }))!;
    await admin.createOperator({
      ...{ id: newId("op_"), name: "root", role: "admin", organizationId: null, expiresAt: null, actor },
      secret: secretOf(texts.operator),
    });
    made = {
      key: { id: key, hash: hashKey(texts.key) },
      "sign-in": { id: signIn, hash: hashKey(texts["sign-in"]) },
      jwt: { id: jwt.id, hash: jwt.secretHash },
    };
  });

  const service = async (hash: Uint8Array) => (await directory(db).credential(hash))?.key.id ?? null;
  const management = async (hash: Uint8Array) =>
    (await administration(db).operatorOf(hash, null))?.operator.name ?? null;
  const code = async (work: Promise<unknown>) =>
    work.then(
      () => "open",
      ({ code }: { code: string }) => code,
    );

  test("each credential opens its own door alone, by the text that is sent", async () => {
    const auth = authenticator({ directory: directory(db), now_ms: () => performance.now() });
    const operator = operatorAuthentication({
      ...{ operators: administration(db), now_ms: () => performance.now(), limits: unknownCredentialLimits },
    });
    const headers = (text: string) => ({ get: (name: string) => (name === "authorization" ? `Bearer ${text}` : null) });
    const seen = await Promise.all(
      Object.entries(texts).map(async ([kind, text]) => [
        kind,
        await code(Promise.try(() => auth.authenticate(headers(text), "192.0.2.1"))),
        await code(operator(headers(text), "192.0.2.1")),
      ]),
    );
    expect(seen).toEqual([
      ["key", "open", "invalid_operator_token"],
      ["sign-in", "open", "invalid_operator_token"],
      ["operator", "invalid_api_key", "open"],
    ]);
    await auth.stop();
  });

  test("an operator is one value, however it is read", async () => {
    const admin = administration(db);
    // The first look-up notes that the secret was used, which the other look-ups show.
    await management(hashKey(texts.operator));
    const found = (await admin.operatorOf(hashKey(texts.operator), null))!.operator;
    const { items } = await admin.pageOperators({ limit: 9 });
    const reads = [await admin.findOperator("root"), await admin.findOperator(found.id), ...items];
    expect(reads.map((one) => encode(Operator, one!))).toEqual(Array(3).fill(encode(Operator, found)));
    expect(found.secrets).toMatchObject([{ prefix: texts.operator.slice(0, 8), suffix: texts.operator.slice(-4) }]);
  });

  test("a key whose kind was changed by hand opens no door until it is as it was", async () => {
    const kinds = ["key", "sign-in", "jwt"] as const;
    // A key for identity tokens also accepts access tokens, which may be a workload's. So a sign-in whose row becomes
    // `jwt` is still accepted.
    const alike = [["sign-in", "jwt"]];
    for (const kind of kinds) {
      const { id, hash } = made[kind];
      for (const other of kinds.filter((one) => one !== kind)) {
        const change = "update api_key set kind = $2 where id = $1";
        await db.query(change, [bare(id, "key_"), other]);
        const isAlike = alike.some(([one, two]) => one === kind && two === other);
        expect([kind, other, await service(hash)]).toEqual([kind, other, isAlike ? id : null]);
        expect(await management(hash)).toBeNull();
        await db.query(change, [bare(id, "key_"), kind]);
      }
      expect(await service(hash)).toBe(id);
    }
  });

  test("a secret that was moved by hand to the other table opens neither door", async () => {
    const [key, operator] = [hashKey(secret("slk_")), hashKey(secret("slo_"))];
    await db.query(
      `insert into key_secret (key_id, number, hash, prefix, suffix, created_at)
       values ($1, 9, $2, 'slo_abcd', 'wxyz', store_now())`,
      [bare(made.key.id, "key_"), operator],
    );
    await db.query(
      `insert into operator_secret (operator_id, number, hash, prefix, suffix, created_at)
       select id, 9, $1, 'slk_abcd', 'wxyz', store_now() from operator`,
      [key],
    );
    for (const hash of [key, operator]) expect([await service(hash), await management(hash)]).toEqual([null, null]);
  });
});
