/**
 * The key store of `sluice login` on a desktop: the real secret-tool with GNOME's keyring, in a D-Bus session of its
 * own. Run by `npm run test:clients -- key-store`.
 */
import { expect, test } from "bun:test";
import { KeyStoreAway, systemKeyStore } from "../../../src/admin/cli/sign-in/key-store.ts";

const store = systemKeyStore(process.env);
if (typeof store === "string") throw new Error(store);

test("an entry is kept, replaced and removed", async () => {
  expect(await store.get("one")).toBeNull();
  await store.put("one", "Sluice: https://a", "slr_first");
  await store.put("one", "Sluice: https://a", "slr_second");
  expect(await store.get("one")).toBe("slr_second");
  await store.remove("one");
  await store.remove("one");
  expect(await store.get("one")).toBeNull();
});

test("a store that is locked says so", async () => {
  const service = ["--dest=org.freedesktop.secrets", "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock"];
  const login = "array:objpath:/org/freedesktop/secrets/collection/login";
  expect(Bun.spawnSync(["dbus-send", "--session", "--print-reply", ...service, login]).exitCode).toBe(0);
  const failure = await store.put("two", "Sluice: https://a", "slr_third").catch((cause) => cause);
  expect(failure).toBeInstanceOf(KeyStoreAway);
  expect(failure.message).toContain("locked");
});
