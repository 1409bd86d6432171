import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../../db/migrate.ts";
import { adminSocket } from "../../../src/admin/cli/socket.ts";
import { userNumbered } from "../../../src/admin/cli/user.ts";
import { direct } from "../../../src/admin/management/client.ts";
import { managementContext } from "../../../src/admin/management/context.ts";
import { type Authenticator, authenticator } from "../../../src/core/auth/authenticate.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { embeddedDatabase } from "../../../src/stores/postgres/embedded.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { until } from "../../harness/until.ts";
import { managementStores } from "../management/stores.ts";
import { shell } from "./shell.ts";

const ends: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-stored-"));
  ends.push(async () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Does what a server does with its database: authenticates, and listens for changes. */
async function serving(db: Database): Promise<Authenticator> {
  const auth = authenticator({
    directory: directory(db),
    now_ms: () => performance.now(),
    limits: { cache_ms: 60_000 },
  });
  ends.push(() => auth.stop());
  ends.push(await revocations(db, { changed: auth.forget }));
  return auth;
}

async function met(auth: Authenticator, key: string): Promise<string> {
  try {
    const { organization } = await auth.authenticate(new Headers({ authorization: `Bearer ${key}` }), "192.0.2.1");
    return organization.slug;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown.code;
    throw thrown;
  }
}

/**
 * The whole life of a key, as an operator types it, compared with what a request gets. The cache holds for a minute:
 * every change that is seen sooner came by message.
 */
async function lifeOfAKey(it: ReturnType<typeof shell>, auth: Authenticator, actor = "cli:ann"): Promise<void> {
  const meets = (key: unknown, what: string) => until(async () => (await met(auth, key as string)) === what);
  const made = await it.json(["org", "create", "acme", "--name", "Acme Ünlimited", "--plan", "pro", "--json"]);
  expect(await it.json("org show acme --json")).toEqual({ ...made, standing: null });
  expect((await it.typed("org create acme")).err).toContain("already exists");
  const first = await it.json(
    "key create --org acme --name app --scopes models:read --models acme/writer-1 --expires 2099-01-01 --json",
  );
  expect(first).toMatchObject({ organization: "acme", scopes: ["models:read"], models: ["acme/writer-1"] });
  await meets(first.key, "acme");
  await it.typed("org suspend acme");
  await meets(first.key, "organization_suspended");
  await it.typed("org resume acme");
  await meets(first.key, "acme");
  const second = await it.json(`key rotate ${first.id} --json`);
  await meets(second.key, "acme");
  await meets(first.key, "acme");
  await it.typed(`key revoke ${first.id} --old`);
  await meets(first.key, "revoked_api_key");
  await meets(second.key, "acme");
  const third = await it.json(`key rotate ${first.id} --grace 0s --json`);
  await meets(second.key, "revoked_api_key");
  const fourth = await it.json(`key rotate ${first.id} --grace 1s --json`);
  await meets(third.key, "expired_api_key");
  await meets(fourth.key, "acme");
  await it.typed(`key revoke ${first.id}`);
  await meets(fourth.key, "revoked_api_key");
  expect((await it.typed(`key rotate ${first.id}`)).err).toContain("revoked");
  const listed = (await it.json("key list --org acme --json")) as unknown as { last_used_at: string | null }[];
  expect(listed).toHaveLength(1);
  const entries = (await it.json("audit list --json")) as unknown as { actor: string; action: string }[];
  expect(new Set(entries.map((entry) => entry.actor))).toEqual(new Set([actor]));
  expect(
    entries
      .map((entry) => entry.action)
      .toReversed()
      .slice(0, 4),
  ).toEqual(["organization.create", "key.create", "organization.suspend", "organization.resume"]);
  for (const { key } of [first, second, third, fourth]) {
    expect(JSON.stringify([listed, entries])).not.toContain(key as string);
  }
}

describe("the life of a key on the stores that we ship", () => {
  test("on the embedded database, through the socket of the server that holds it", async () => {
    const dataDir = newFolder();
    const db = await embeddedDatabase(join(dataDir, "postgres"));
    ends.push(() => db.close());
    await migrate(db);
    const auth = await serving(db);
    const it = shell({
      storage: () => ({ databaseUrl: null, redisUrl: null, dataDir }),
      openStore: () => Promise.reject(new Error("must not be opened twice")),
    });
    const { catalog } = await it.services.configuration();
    const socket = await adminSocket({
      dataDir,
      actAs: (actor) =>
        direct(
          managementContext({
            ...managementStores(db),
            catalog: () => ({
              plans: catalog.plans,
              models: [...catalog.models.keys()],
              upstreams: [],
              billing: { currency: "USD", provider: "Sluice" },
            }),
            actor,
            now_ms: Date.now,
            newUuid: () => Bun.randomUUIDv7(),
            random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
          }),
        ),
    });
    ends.push(() => socket.stop());
    const me = userNumbered(process.getuid?.() ?? 0);
    await lifeOfAKey(it, auth, `cli:${me} (claims ann)`);
  }, 60_000);

  test("on a Postgres server, from a process that is not the server", async () => {
    const { url, drop } = await migratedDatabase();
    ends.push(drop);
    const db = await serverDatabase(url);
    ends.push(() => db.close());
    const auth = await serving(db);
    const it = shell({
      now_ms: Date.now,
      storage: () => ({ databaseUrl: url, redisUrl: null, dataDir: "/nowhere" }),
      openStore: async () => {
        const own = await serverDatabase(url);
        return {
          ...managementStores(own),
          close: () => own.close(),
        };
      },
    });
    await lifeOfAKey(it, auth);
  }, 60_000);
});
