// Sign-ins of the command line whose secret (a refresh token or a key) is in the system's key store. `secret-tool` is a
// fake here (test/harness/secret-tool.ts).
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemKeyStore } from "../../../src/admin/cli/sign-in/key-store.ts";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { standInKeyStore } from "../../harness/secret-tool.ts";
import { until } from "../../harness/until.ts";
import { typedHere } from "./typed-here.ts";

setDefaultTimeout(60_000);

let node: PeopleNode;
const secrets: string[] = [];
beforeAll(async () => {
  node = await startPeopleNode({ secrets });
  node.provider.account = "ann";
  node.provider.claims.set("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
});
afterAll(() => node?.[Symbol.asyncDispose]());

/** A machine with a key store, whose user has not configured where secrets are stored. */
function desktop() {
  const bare = laptop();
  const store = standInKeyStore(bare.folder);
  const home = bare.with({ ...store.env, SLUICE_TOKEN_STORE: "" });
  return { home, store, [Symbol.dispose]: () => bare[Symbol.dispose]() };
}
const fileOf = (home: Laptop) => home.signInFile(node.serviceUrl);
const kept = (home: Laptop) => JSON.parse(readFileSync(fileOf(home), "utf8"));
const change = (home: Laptop, changes: object) =>
  writeFileSync(fileOf(home), JSON.stringify({ ...kept(home), ...changes }));
const keyIn = (home: Laptop, ...words: string[]) =>
  typedHere(home.with({ SLUICE_KEY: node.sluice.key }), "login", node.serviceUrl, "--key", ...words);

describe("a key", () => {
  test("is in the key store where there is one that works, and in no file and no argument", async () => {
    using at = desktop();
    expect(await keyIn(at.home)).toMatchObject({
      code: 0,
      stdout: `Kept the key for ${node.serviceUrl}. Its secret is in the system's key store.\n`,
      stderr: "",
    });
    expect(await at.store.secrets()).toEqual([node.sluice.key]);
    expect(readFileSync(fileOf(at.home), "utf8")).not.toContain(node.sluice.key);
    expect(at.store.typed()).not.toContain(node.sluice.key);
    expect((await typedHere(at.home, "token")).stdout).toBe(`${node.sluice.key}\n`);
    expect((await typedHere(at.home, "logout")).code).toBe(0);
    expect(await at.store.secrets()).toEqual([]);
  });

  test("moves to a file, and leaves nothing in the key store, when its user signs in again with --store file", async () => {
    using at = desktop();
    await keyIn(at.home);
    const answer = await keyIn(at.home, "--store", "file", "--json");
    expect(JSON.parse(answer.stdout)).toMatchObject({ kind: "key", store: "file" });
    expect(await at.store.secrets()).toEqual([]);
    expect(kept(at.home)).toEqual({ kind: "key", key: node.sluice.key });
  });

  test("of a locked key store is asked for in vain, with the words to go on", async () => {
    using at = desktop();
    await keyIn(at.home);
    await at.store.lock();
    const refused = await typedHere(at.home, "token");
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("is in the system's key store, which cannot be used here: secret-tool: Cannot");
    expect(refused.stderr).toContain(`Unlock it, or run: sluice login ${node.serviceUrl} --store file`);
    await at.store.unlock();
    expect((await typedHere(at.home, "token")).code).toBe(0);
    const elsewhere = at.home.with({ DBUS_SESSION_BUS_ADDRESS: "" });
    expect((await typedHere(elsewhere, "token")).stderr).toContain("this session has no D-Bus");
  });

  test("that was deleted in the key store is asked for anew", async () => {
    using at = desktop();
    await keyIn(at.home);
    const { id } = kept(at.home).key as { id: string };
    Bun.spawnSync([join(at.home.folder, "key-store/secret-tool"), "clear", "sign-in", id]);
    const refused = await typedHere(at.home, "token");
    expect(refused.stderr).toBe(
      `sluice: the system's key store no longer has your sign-in at ${node.serviceUrl}. Run: sluice login ${node.serviceUrl}\n`,
    );
  });
});

describe("where there is no key store that works", () => {
  test("a file is taken; without a word where there is none, with one where it is locked", async () => {
    using bare = laptop();
    const home = bare.with({ SLUICE_TOKEN_STORE: "", PATH: "/nowhere" });
    expect(await keyIn(home)).toMatchObject({ code: 0, stderr: "" });
    expect(kept(home).key).toBe(node.sluice.key);
    using at = desktop();
    await at.store.lock();
    const locked = await keyIn(at.home);
    expect([locked.code, kept(at.home).key]).toEqual([0, node.sluice.key]);
    expect(locked.stderr).toContain("the system's key store cannot be used (secret-tool: Cannot create an item");
  });

  test("--store system, and the variable, are refused before anything is asked, and keep nothing", async () => {
    using at = desktop();
    await at.store.lock();
    const system = at.home.with({ SLUICE_TOKEN_STORE: "system" });
    for (const answer of [
      await keyIn(at.home, "--store", "system"),
      await typedHere(system, "login", node.serviceUrl),
    ]) {
      expect([answer.code, answer.stdout]).toEqual([1, ""]);
      expect(answer.stderr).toContain("Unlock it. To keep the sign-in in a file that only you can read: --store file");
    }
    using bare = laptop();
    expect((await keyIn(bare.with({ PATH: "/nowhere" }), "--store", "system")).stderr).toContain(
      "There is no key store that can be used: there is no 'secret-tool' in PATH (Debian: libsecret-tools).",
    );
    expect([existsSync(fileOf(at.home)), existsSync(fileOf(bare))]).toEqual([false, false]);
  });

  test("other words are refused", async () => {
    using bare = laptop();
    expect((await keyIn(bare, "--store", "cloud")).code).toBe(2);
    const { code, stderr } = await keyIn(bare.with({ SLUICE_TOKEN_STORE: "cloud" }));
    expect([code, stderr]).toEqual([1, "sluice: SLUICE_TOKEN_STORE is 'cloud'. Set it to file or system.\n"]);
  });
});

test("a person's refresh token is in the key store, through refreshes, and the access token of an hour in the file", async () => {
  using at = desktop();
  const { home, store } = at;
  expect((await home.signIn(node)).stdout).toContain("as ann@x.test. Its secret is in the system's key store.");
  const [first] = await store.secrets();
  expect(first).toStartWith("slr_");
  const note = async () => secrets.push(...(await store.secrets()), kept(home).access_token);
  await note();
  expect(readFileSync(fileOf(home), "utf8")).not.toContain("slr_");
  const calls = () => store.typed().split("\n").length;
  const before = calls();
  expect((await typedHere(home, "token")).stdout).toBe(`${kept(home).access_token}\n`);
  // The key store, which might prompt for a password, is not used while the access token is valid.
  expect(calls()).toBe(before);

  change(home, { renew_at_ms: 0 });
  await store.lock();
  expect((await typedHere(home, "token")).stdout).toBe(`${kept(home).access_token}\n`);
  change(home, { renew_at_ms: 0, ends_at_ms: 0 });
  expect((await typedHere(home, "token")).stderr).toContain("Unlock it, or run: sluice login");
  await store.unlock();
  expect((await typedHere(home, "token")).code).toBe(0);
  await note();
  const [next, ...others] = await store.secrets();
  expect([next === first, next?.startsWith("slr_"), others]).toEqual([false, true, []]);
  expect(store.typed()).not.toContain("slr_");

  const { stdout: last } = await typedHere(home, "token");
  expect((await typedHere(home, "logout")).stdout).toBe(`Signed out at ${node.serviceUrl}.\n`);
  expect(await store.secrets()).toEqual([]);
  const models = () => fetch(`${node.serviceUrl}/v1/models`, { headers: { authorization: `Bearer ${last.trim()}` } });
  await until(async () => (await models()).status === 401, 1_000, "the token to end");
});

/** A fake of macOS's `security` in its interactive mode, with the commands that are used. */
const security = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >>arguments
if [ "$1" = -i ]; then read -r line; eval "set -- $line"; id=$6; shift 9; printf %s "$1" >"entry-$id"; exit 0; fi
case $1 in
  find-generic-password) [ -e "entry-$5" ] || exit 44; cat "entry-$5"; echo ;;
  delete-generic-password) [ -e "entry-$5" ] || exit 44; rm "entry-$5" ;;
esac
`;

test("macOS's Keychain gets the secret by standard input (a stand-in for 'security')", async () => {
  using bare = laptop();
  const bin = join(bare.folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "security"), security);
  chmodSync(join(bin, "security"), 0o755);
  const store = systemKeyStore({ PATH: `${bin}:${process.env.PATH}` }, "darwin");
  if (typeof store === "string") throw new Error(store);
  expect(await store.get("one")).toBeNull();
  await store.put("one", 'Sluice: "https://a"', "slr_secret");
  expect(await store.get("one")).toBe("slr_secret");
  await store.remove("one");
  await store.remove("one");
  expect(await store.get("one")).toBeNull();
  expect(readFileSync(join(bin, "arguments"), "utf8")).not.toContain("slr_secret");
  expect(systemKeyStore({ PATH: bin }, "win32")).toBe("Sluice knows none on win32");
});
