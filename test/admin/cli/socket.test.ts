import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { adminSocket, socketManagement } from "../../../src/admin/cli/socket.ts";
import { userNumbered } from "../../../src/admin/cli/user.ts";
import { direct, type Transport } from "../../../src/admin/management/client.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { memoryDirectory } from "../../core/auth/memory-directory.ts";
import { saidAs } from "../../harness/stranger.ts";
import { emptyLedger, memoryContext } from "../management/empty-ledger.ts";
import { listOrganizations } from "../management/lists.ts";
import { shell } from "./shell.ts";

const folders: string[] = [];
const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-socket-"));
  // Other users may enter this folder, because a data folder may be open to them. Even then they must not be able to
  // use the socket.
  chmodSync(folder, 0o755);
  folders.push(folder);
  return folder;
}

async function served(dataDir = newFolder(), actAs?: (actor: string) => Transport) {
  const directory = memoryDirectory();
  const actors: string[] = [];
  const socket = await adminSocket({
    dataDir,
    actAs:
      actAs ??
      ((actor) => {
        actors.push(actor);
        return direct(memoryContext(directory, { actor }));
      }),
  });
  stops.push(socket.stop);
  return { ...socket, dataDir, directory, actors };
}

async function caller(dataDir: string): Promise<Management> {
  const found = await socketManagement({ dataDir, actor: "cli:ann" });
  if (!found) throw new Error("no server");
  return found;
}

async function thrownBy(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof Error) return thrown;
  }
  throw new Error("was accepted");
}

const me = userNumbered(process.getuid?.() ?? 0);

describe("the administrator's socket", () => {
  test("says who acts: the system's user, with the name that the caller claims", async () => {
    const { dataDir, directory, actors } = await served();
    const manage = await caller(dataDir);
    const { id } = await manage.createOrganization({ slug: "acme" });
    expect((await directory.findOrganization("acme"))!.id).toBe(id);
    expect(actors[0]).toBe(`cli:${me} (claims ann)`);
    expect((await directory.listAudit({ limit: 1 }))[0]?.actor).toBe(`cli:${me} (claims ann)`);
    const own = await socketManagement({ dataDir, actor: `cli:${me}` });
    await listOrganizations(own!);
    expect(actors.at(-1)).toBe(`cli:${me}`);
  });

  test("can be opened by its owner alone, from its first moment", async () => {
    const { path, dataDir } = await served();
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
    expect(lstatSync(join(path, "..")).mode & 0o777).toBe(0o700);
    if (process.getuid?.() !== 0) return;
    // As root, the test can act as another user, whose connection to the socket must be refused.
    const source = `
      import { connect } from "node:net";
      const socket = connect(${JSON.stringify(path)});
      socket.on("connect", () => { console.log("open"); process.exit(); });
      socket.on("error", (error) => { console.log(error.code); process.exit(); });`;
    expect(await saidAs(65_534, source)).toBe("EACCES\n");
    const asked = `
      import { socketManagement } from ${JSON.stringify(join(import.meta.dir, "../../../src/admin/cli/socket.ts"))};
      await socketManagement({ dataDir: ${JSON.stringify(dataDir)}, actor: "cli:mallory" }).catch((e) => console.log(e.name, e.message));`;
    expect(await saidAs(65_534, asked)).toContain("ManagementError");
  });

  test("closes a folder that others could enter, and takes none that is not its own", async () => {
    const open = newFolder();
    mkdirSync(join(open, "admin"), { mode: 0o777 });
    chmodSync(join(open, "admin"), 0o777);
    const { path } = await served(open);
    expect(lstatSync(join(path, "..")).mode & 0o777).toBe(0o700);

    const linked = newFolder();
    symlinkSync(newFolder(), join(linked, "admin"));
    expect((await thrownBy(served(linked))).message).toContain("SLUICE_DATA_DIR");

    if (process.getuid?.() !== 0) return;
    const foreign = newFolder();
    mkdirSync(join(foreign, "admin"));
    chownSync(join(foreign, "admin"), 65534, 65534);
    expect((await thrownBy(served(foreign))).message).toContain("SLUICE_DATA_DIR");
  });

  test("is asked nothing where it may be somebody else's: no command and no trust for a forged one", async () => {
    const forged = async (spoil: (folder: string, path: string) => void) => {
      const dataDir = newFolder();
      const folder = join(dataDir, "admin");
      mkdirSync(folder, { mode: 0o700 });
      const path = join(folder, "sluice.sock");
      let asked = 0;
      const fetch = () => {
        asked++;
        return Response.json({ version: 1, result: null });
      };
      const server = Bun.serve({ unix: path, fetch });
      stops.push(() => server.stop(true));
      spoil(folder, path);
      const refused = await thrownBy(socketManagement({ dataDir, actor: "cli:ann" }));
      expect([refused.name, asked]).toEqual(["ManagementError", 0]);
      return refused.message;
    };
    for (const mode of [0o755, 0o770, 0o777])
      expect(await forged((folder) => chmodSync(folder, mode))).toContain("is open to other users: chmod 700");
    if (process.getuid?.() !== 0) return;
    expect(await forged((folder) => chownSync(folder, 65534, 65534))).toContain("belongs to another user");
    expect(await forged((_, path) => chownSync(path, 65534, 65534))).toContain("belongs to another user");
  });

  test.skipIf(process.getuid?.() !== 0)("is root's to use, if it is the data folder's owner's", async () => {
    const link = join(newFolder(), "data");
    const { dataDir, path } = await served();
    symlinkSync(dataDir, link);
    for (const one of [join(path, ".."), path]) chownSync(one, 65534, 65534);
    expect((await thrownBy(socketManagement({ dataDir, actor: "cli:root" }))).message).toContain("another user");
    chownSync(dataDir, 65534, 65534);
    for (const through of [dataDir, link]) expect(await listOrganizations(await caller(through))).toEqual([]);
    chownSync(path, 65533, 65533);
    expect((await thrownBy(socketManagement({ dataDir, actor: "cli:root" }))).message).toContain("another user");
  });

  test("that a killed server left behind is replaced; one that lives is not", async () => {
    const dataDir = newFolder();
    const source = `
      import { adminSocket } from ${JSON.stringify(join(import.meta.dir, "../../../src/admin/cli/socket.ts"))};
      await adminSocket({ dataDir: ${JSON.stringify(dataDir)}, actAs: () => async () => ({}) });
      console.log("open");`;
    const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
    for await (const _ of child.stdout) break;
    expect((await thrownBy(served(dataDir))).message).toContain("already serves");
    child.kill("SIGKILL");
    await child.exited;
    expect(existsSync(join(dataDir, "admin/sluice.sock"))).toBe(true);
    expect(await socketManagement({ dataDir, actor: "cli:ann" })).toBeNull();
    await served(dataDir);
    expect(await listOrganizations(await caller(dataDir))).toEqual([]);
  });

  test("is gone when the server has stopped, without waiting for callers", async () => {
    const { dataDir, path, stop } = await served();
    const manage = await caller(dataDir);
    await listOrganizations(manage);
    await stop();
    expect(existsSync(path)).toBe(false);
    expect(await socketManagement({ dataDir, actor: "cli:ann" })).toBeNull();
    expect(await socketManagement({ dataDir: "/does/not/exist", actor: "cli:ann" })).toBeNull();
  });

  test("is gone soon after the server has stopped, beside a command that takes half an hour, and the command says so", async () => {
    const asked = Promise.withResolvers<void>();
    const { dataDir, path, stop } = await served(newFolder(), () => () => {
      asked.resolve();
      return new Promise(() => {});
    });
    const failed = thrownBy(listOrganizations(await caller(dataDir)));
    await asked.promise;
    const began_ms = performance.now();
    await stop();
    expect(performance.now() - began_ms).toBeLessThan(5_000);
    expect(existsSync(path)).toBe(false);
    expect((await failed).message).toContain("The server stopped before it answered");
  });

  test("works below a path that is longer than a socket's may be", async () => {
    const deep = join(newFolder(), "a-long-name-".repeat(10), "another-long-name-".repeat(8));
    const { dataDir } = await served(deep);
    expect(await listOrganizations(await caller(dataDir))).toEqual([]);
  });

  test("takes nothing but known verbs in a known form, and says what is wrong", async () => {
    const { path, directory } = await served();
    const valid = { version: 2, actor: "cli:ann", verb: "createOrganization", input: { slug: "acme" } };
    const post = async (body: string) => {
      const response = await fetch("http://sluice/", { unix: path, method: "POST", body });
      return { status: response.status, text: await response.text() };
    };
    for (const wrong of [
      { ...valid, version: 1 },
      { ...valid, verb: "constructor" },
      { ...valid, verb: "__proto__" },
      { ...valid, actor: "service" },
      { ...valid, actor: "cli:a b\n" },
      { ...valid, input: "acme" },
      { ...valid, input: null },
      [],
      null,
      7,
    ]) {
      const { status, text } = await post(JSON.stringify(wrong));
      expect([status, Object.keys(JSON.parse(text))]).toEqual([400, ["version", "failure"]]);
    }
    for (const body of ["", "{", "\u0000", `${"[".repeat(30_000)}`, `${"[".repeat(30_000)}${"]".repeat(30_000)}`]) {
      expect((await post(body)).status).toBe(400);
    }
    expect((await post(JSON.stringify({ ...valid, input: { slug: "x".repeat(270_000) } }))).status).toBe(413);
    expect(await directory.listOrganizations()).toEqual([]);
    expect((await post(JSON.stringify(valid))).status).toBe(200);
  });

  test("tells an outage from a refusal", async () => {
    const outage = () => Promise.reject(new Error("the disk is full"));
    const { dataDir } = await served(newFolder(), () => outage);
    const failed = await thrownBy(listOrganizations(await caller(dataDir)));
    expect(failed).not.toBeInstanceOf(ManagementError);
    expect(failed.message).toContain("the disk is full");
  });

  test("of another build is refused in words", async () => {
    const dataDir = newFolder();
    mkdirSync(join(dataDir, "admin"), { mode: 0o700 });
    const other = Bun.serve({
      unix: join(dataDir, "admin/sluice.sock"),
      fetch: () => Response.json({ version: 1, result: null }),
    });
    stops.push(() => other.stop(true));
    const refused = await thrownBy(socketManagement({ dataDir, actor: "cli:ann" }));
    expect(refused).toBeInstanceOf(ManagementError);
    expect(refused.message).toContain("different versions");
  });
});

describe("commands find the data where they are", () => {
  const embeddedIn = (dataDir: string) => () => ({ databaseUrl: null, redisUrl: null, dataDir });
  /** A store that consists of this directory and an empty ledger, and calls `close` when it is closed. */
  const storeOf = (administration: ReturnType<typeof memoryDirectory>, close: () => void) => ({
    ...{ administration, ...emptyLedger() },
    close: async () => close(),
  });
  const nobody = () => Promise.reject(new Error("must not be opened"));

  test("a running server is asked through its socket", async () => {
    const { dataDir, directory } = await served();
    const it = shell({ storage: embeddedIn(dataDir), openStore: nobody, migrate: nobody });
    const made = await it.json("org create acme --json");
    expect(made.id).toBe((await directory.findOrganization("acme"))!.id);
    expect((await it.typed("org create acme")).err).toContain("already exists");
    expect(await it.json("migrate --json")).toEqual({ applied: [] });
    expect((await it.typed("doctor")).out).toContain("held by the running server");
  });

  test("DATABASE_URL goes before a socket, and without a server the folder's own database is opened and closed", async () => {
    const { dataDir, directory } = await served();
    let closed = 0;
    const own = memoryDirectory();
    const openStore = async () => storeOf(own, () => void closed++);
    const onServer = () => ({ ...embeddedIn(dataDir)(), databaseUrl: "postgres://db.example/x" });
    for (const storage of [onServer, embeddedIn(newFolder())]) {
      const it = shell({ storage, openStore });
      expect((await it.typed(`org create org-${closed}`)).code).toBe(0);
    }
    expect((await shell({ openStore }).typed("org show nobody")).code).toBe(1);
    expect(closed).toBe(3);
    expect(await directory.listOrganizations()).toEqual([]);
    expect(await own.listOrganizations()).toHaveLength(2);
  });

  test("a server that is just starting is waited for", async () => {
    const dataDir = newFolder();
    const starting = Promise.withResolvers<void>();
    const it = shell({
      storage: embeddedIn(dataDir),
      openStore: () => {
        starting.resolve();
        return Promise.reject(Object.assign(new Error("the data folder is in use"), { code: "in_use" }));
      },
    });
    const listed = it.typed("org list --json");
    await starting.promise;
    await served(dataDir);
    expect(await listed).toEqual({ code: 0, out: "[]\n", err: "" });
  });

  test("commands at the same time wait for each other, and what cannot be opened at all fails at once", async () => {
    const storage = embeddedIn(newFolder());
    const own = memoryDirectory();
    let open = 0;
    const openStore = async () => {
      if (open > 0) throw Object.assign(new Error("the data folder is in use"), { code: "in_use" });
      open++;
      return storeOf(own, () => void open--);
    };
    const create = async (at: number) => (await shell({ storage, openStore }).typed(`org create org-${at}`)).code;
    const codes = await Promise.all([0, 1, 2, 3, 4].map(create));
    expect(codes).toEqual([0, 0, 0, 0, 0]);
    let asked = 0;
    const broken = () => {
      asked++;
      return Promise.reject(new Error("the disk is full"));
    };
    expect((await shell({ storage, openStore: broken }).typed("org list")).err).toBe("sluice: the disk is full\n");
    expect(asked).toBe(1);
  });

  test("the name of who does it fits the audit log, whatever the system calls them", async () => {
    for (const [user, actor] of [
      ["ann", "cli:ann"],
      ["DOMAIN\\ann müller", "cli:DOMAIN_ann_m_ller"],
      ["", "cli:unknown"],
    ] as const) {
      const it = shell({ user });
      await it.typed("org create acme");
      expect((await it.directory.listAudit({ limit: 1 }))[0]?.actor).toBe(actor);
    }
  });
});

test("the user's name is found without USER, and a nameless number is named by it", async () => {
  const source = `import { systemUser } from ${JSON.stringify(join(import.meta.dir, "../../../src/admin/cli/user.ts"))}; console.log(systemUser());`;
  const named = async (env: Record<string, string>) =>
    (await Bun.spawn([process.execPath, "-e", source], { env, stdout: "pipe" }).stdout.text()).trim();
  // The environment variable USER does not determine the actor's name: with USER=ann, the name stays the same.
  expect(await named({ USER: "ann" })).toBe(await named({}));
  expect(await named({})).toMatch(/^[\w.@+-]+$/);
  expect(await named({})).not.toBe("unknown");
  if (process.getuid?.() === 0) expect((await saidAs(54_321, source)).trim()).toBe("uid-54321");
});
