// The actions that each kind of key allows: an ordinary key, a sign-in, and the key for identity tokens
// (docs/access.md, Kinds of keys).
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import { type Who, worldForTests } from "./own-world.ts";
import { actingAs, callersIn, tokenKeyOf, tokensOf } from "./world.ts";

setDefaultTimeout(60_000);
const world = worldForTests();

const as = (who: Who): Management => actingAs(world.db, callersIn(world)[who]);
/** The code and the message of an error; the code `done` if there was none. */
const told = (act: Promise<unknown>) =>
  act.then(
    () => ({ code: "done", message: "" }),
    ({ code, message }: { code: string; message: string }) => ({ code, message }),
  );
const stored = async (table: string, column: string, keyId: string) =>
  world.db.query(`select * from ${table} where ${column} = $1`, [uuidOf(keyId, "key_")]);

test("neither a sign-in nor a token's key gets a secret by a rotation, whoever asks", async () => {
  for (const who of ["member", "organization-admin", "admin", "operator admin", "command line"] as const)
    for (const kind of ["sign-in", "jwt"] as const) {
      const id = world.keys[kind];
      const before = await stored("key_secret", "key_id", id);
      expect({ who, kind, ...(await told(as(who).rotateKey({ id, grace: "0s" }))) }).toMatchObject({
        ...{ who, kind, code: "wrong_state", message: expect.stringContaining("cannot be rotated") },
      });
      expect(await told(as(who).revokeKey({ id, old: true }))).toMatchObject({ code: "wrong_state" });
      expect(await stored("key_secret", "key_id", id)).toEqual(before);
    }
  expect((await as("member").rotateKey({ id: world.keys.key })).key).toStartWith("slk_");
});

test("neither of them is changed, limited, raised or moved: the words name the person's limits", async () => {
  const until = new Date(Date.now() + 86_400_000).toISOString();
  const raise = { limits: { week: "200" }, until };
  for (const kind of ["sign-in", "jwt"] as const) {
    const id = world.keys[kind];
    const { manage } = world;
    expect(await told(manage.updateKey({ id, name: "mine" }))).toMatchObject({ code: "wrong_state" });
    expect(await told(manage.updateKey({ id, expiresAt: null }))).toMatchObject({ code: "wrong_state" });
    for (const act of [
      () => manage.updateKeyLimits({ id, own: { week: "100" } }),
      () => manage.updateKey({ id, team: "support" }),
      () => manage.updateKeyLimits({ id, raise }),
    ])
      expect(await told(act())).toMatchObject({
        ...{ code: "wrong_state", message: expect.stringContaining(`sluice limit set ${world.people.ann} --org`) },
      });
    expect(await manage.findKey({ id })).toMatchObject({ id, kind, personId: world.people.ann });
    expect((await manage.pageKeys({ kind })).data.map((one) => one.id)).toContain(id);
  }
});

test("revoking a sign-in ends it for good, with its refresh tokens and what the issuer gave", async () => {
  const { "sign-in": id } = await tokensOf(world.db, world.people.ann, world.acme, world.teams.research);
  expect(await as("member").revokeKey({ id })).toMatchObject({ id, state: "revoked" });
  expect(await stored("sign_in", "key_id", id)).toMatchObject([{ ended_at: expect.any(Date), tokens: null }]);
  expect(await told(as("member").rotateKey({ id }))).toMatchObject({ code: "wrong_state" });
  expect((await as("member").revokeKey({ id })).state).toBe("revoked");
});

test("a token's key is not revoked: the next token would get another key, without what was set", async () => {
  const { ann } = world.people;
  for (const who of ["member", "organization-admin", "admin", "command line"] as const) {
    const { code, message } = await told(as(who).revokeKey({ id: world.keys.jwt }));
    expect({ who, code }).toEqual({ who, code: "wrong_state" });
    expect(message).toContain(`sluice person suspend ${ann}`);
    expect(message).toContain(`sluice membership take ${ann}`);
  }
  expect(await tokenKeyOf(world.db, ann, world.acme)).toBe(world.keys.jwt);
});
