import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checksumOf, migrations } from "../../../db/migrate.ts";
import type { Services } from "../../../src/admin/cli/services.ts";
import { adminSocket } from "../../../src/admin/cli/socket.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import type { ServerSettings } from "../../../src/config/configuration.ts";
import { identityOf } from "../../../src/config/identity.ts";
import { defaultTimeouts, type Resolving, type Upstream } from "../../../src/core/upstream/target.ts";
import { services as nodeServices } from "../../../src/node/services.ts";
import { authority } from "../../harness/certificates.ts";
import { startNameServer } from "../../harness/name-server.ts";
import { doctorOf, shell } from "./shell.ts";

const servers: { stop(force: boolean): Promise<void> }[] = [];
const folder = mkdtempSync(join(tmpdir(), "sluice-doctor-"));
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop(true)));
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a server that handles every path with `fetch`, and returns its port. */
function answering(fetch: (request: Request) => Response | Promise<Response>): number {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  servers.push(server);
  return server.port!;
}

/** Returns a port on which no program listens. */
async function deadPort(): Promise<number> {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port!;
}

describe("healthcheck", () => {
  const ready = () => answering(({ url }) => new Response(null, { status: url.endsWith("/readyz") ? 200 : 404 }));

  test("is 0 when the local server is ready, wherever it listens", async () => {
    const PORT = String(ready());
    for (const HOST of [undefined, "", "0.0.0.0", "::", "127.0.0.1", "localhost"]) {
      expect(await shell({ environment: { PORT, HOST } }).typed("healthcheck")).toMatchObject({ code: 0, err: "" });
    }
  });

  test("is 0 or 1 by the URL that is named, its own path kept", async () => {
    const port = ready();
    const { typed } = shell();
    expect((await typed(`healthcheck --url http://127.0.0.1:${port}`)).code).toBe(0);
    expect((await typed(`healthcheck --url http://127.0.0.1:${port}/readyz`)).code).toBe(0);
    expect((await typed(`healthcheck --url http://127.0.0.1:${port}/other`)).code).toBe(1);
  });

  test("is 1 with the failing check when the server is not ready", async () => {
    const checks = { database: "no answer within 2000 ms" };
    const PORT = String(answering(() => Response.json({ status: "not_ready", checks }, { status: 503 })));
    const { code, err } = await shell({ environment: { PORT } }).typed("healthcheck");
    expect([code, err]).toEqual([1, "sluice: not ready (503): database: no answer within 2000 ms\n"]);
  });

  test("is 1 with the reason when the environment does not say where the server is", async () => {
    for (const PORT of ["many", "0"]) {
      const { code, err } = await shell({ environment: { PORT } }).typed("healthcheck");
      expect([code, err]).toEqual([1, expect.stringContaining("PORT")]);
    }
  });

  test("is 1 when nobody is there, or somebody else", async () => {
    const PORT = String(await deadPort());
    const nobody = await shell({ environment: { PORT } }).typed("healthcheck");
    expect([nobody.code, nobody.err]).toEqual([1, `sluice: nothing answers at http://127.0.0.1:${PORT}\n`]);
    const garbage = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { open: (socket) => void socket.end("SSH-2.0-x\r\n"), data() {} },
    });
    const other = await shell({ environment: { PORT: String(garbage.port) } }).typed("healthcheck");
    garbage.stop(true);
    expect([other.code, other.err]).toEqual([1, expect.stringContaining("no HTTP response")]);
  });
});

describe("doctor", () => {
  type Examined = Parameters<typeof shell>[0] & { upstreams?: Upstream[]; server?: Partial<ServerSettings> };
  async function examined({ upstreams = [], server = {}, ...services }: Examined = {}) {
    const it = shell({ environment: { PORT: String(await deadPort()) }, ...services });
    const { configuration } = it.services;
    const settings = await configuration();
    it.services.configuration = async () => ({ ...settings, upstreams, server: { ...settings.server, ...server } });
    const found = await doctorOf(it);
    const people = await it.typed("doctor");
    expect(people.code).toBe(found.code);
    // The texts of all findings begin in the same column.
    for (const { check, says } of found.findings) expect(people.out).toContain(` ${check.padEnd(16)} ${says}\n`);
    return found;
  }
  const at = (port: number, apiKey: string | null = null): Upstream => ({
    name: "main",
    url: `http://127.0.0.1:${port}/v1`,
    protocol: "openai-chat",
    apiKey,
    timeouts: defaultTimeouts,
  });

  const database = (differs: Partial<Awaited<ReturnType<Services["inspectDatabase"]>>>) => async () => ({
    ...{ says: "Postgres responds.", administrators: null, processes: 1 },
    schema: { is: "current", problem: null } as const,
    ...differs,
  });

  test("finds nothing wrong where nothing is", async () => {
    const engine = answering(({ url }) =>
      url.endsWith("/v1/models") ? Response.json({ data: [] }) : new Response("", { status: 404 }),
    );
    const server = answering(() => new Response("ok"));
    const { code, err, findings } = await examined({
      upstreams: [at(engine)],
      environment: { PORT: String(server) },
      storage: () => ({ databaseUrl: "postgres://x", redisUrl: "redis://x", dataDir: folder }),
    });
    expect([code, err]).toEqual([0, ""]);
    expect(findings.map(({ check, status }) => `${check}: ${status}`)).toEqual([
      "configuration: ok",
      "storage: ok",
      "database: ok",
      "schema: ok",
      "redis: ok",
      "engine main: ok",
      "metrics: ok",
      "descriptors: ok",
      "server: ok",
      "console: ok",
    ]);
  });

  test("names each thing that is wrong and what to do, in one run", async () => {
    const { code, err, of } = await examined({
      upstreams: [at(await deadPort())],
      storage: () => ({ databaseUrl: "postgres://x", redisUrl: "redis://x", dataDir: folder }),
      inspectDatabase: () => Promise.reject(new Error("cannot use the database at db:5432/sluice:\nrefused")),
      inspectRedis: () => Promise.reject(new Error("redis does not answer")),
    });
    expect([code, err]).toEqual([1, "sluice: 3 of 9 checks failed: database, redis, engine main\n"]);
    expect(of("database")).toMatchObject({
      status: "problem",
      says: "cannot use the database at db:5432/sluice: refused",
    });
    expect(of("engine main").says).toContain("start the engine");
    expect(of("server")).toMatchObject({ status: "ok", says: expect.stringContaining("sluice serve") });
  });

  describe("of the console", () => {
    const ways = () =>
      answering(({ url }) =>
        url.endsWith("/session/ways") ? Response.json({ issuers: [] }) : new Response("", { status: 404 }),
      );
    async function consoleOf(
      server: Partial<ServerSettings>,
      more: { runs?: boolean; url?: string; addresses?: string[] } = {},
    ) {
      const { runs = true, url, addresses = ["127.0.0.1", "::1", "10.0.0.7", "fe80::1%eth0"] } = more;
      const PORT = String(runs ? answering(() => new Response("ok")) : await deadPort());
      const { services } = shell();
      const { identity, ...standard } = await services.configuration();
      const console_url = url === undefined ? identity : identityOf({ console_url: url });
      const { of } = await examined({
        environment: { PORT },
        addresses: () => addresses,
        configuration: async () => ({ ...standard, identity: console_url }),
        server,
      });
      const told = (check: string) => `${of(check).status}: ${of(check).says}`;
      return { console: told("console"), metrics: told("metrics") };
    }

    test("says that it answers, on the machine and at its address", async () => {
      const port = ways();
      const here = { host: "127.0.0.1", port };
      expect((await consoleOf({ console: here })).console).toStartWith(`ok: answers at http://127.0.0.1:${port}`);
      const elsewhere = `http://127.0.0.1:${ways()}`;
      expect((await consoleOf({ console: { host: "0.0.0.0", port } }, { url: elsewhere })).console).toBe(
        `ok: answers on 0.0.0.0, port ${port}, and at ${elsewhere}`,
      );
      const other = `http://127.0.0.1:${answering(() => new Response("hi"))}`;
      const wrong = await consoleOf({ console: here }, { url: other });
      expect(wrong.console).toMatch(/^warning: .*something else answers \(200\)/);
      expect((await consoleOf({}, { runs: false })).console).toContain("sluice console");
    });

    test("says that nothing or something else answers, if the server runs", async () => {
      const port = await deadPort();
      const console = { host: "127.0.0.1", port };
      const nothing = (await consoleOf({ console })).console;
      expect(nothing).toStartWith("problem: ");
      expect(nothing).toContain(`http://127.0.0.1:${port}: nothing answers`);
      const other = answering(() => Response.json({}));
      expect((await consoleOf({ console: { host: "::", port: other } })).console).toContain("something else answers");
      expect((await consoleOf({ console }, { runs: false })).console).toMatch(/^ok: .*the server does not run/);
    });

    test("says that the certificate at its address is not trusted here, and what to do", async () => {
      const { certificate: cert, key } = authority().issue(["127.0.0.1"]);
      const proxy = Bun.serve({ hostname: "127.0.0.1", port: 0, tls: { cert, key }, fetch: () => new Response() });
      servers.push(proxy);
      const own = { console: { host: "127.0.0.1", port: ways() } };
      const told = (await consoleOf(own, { url: `https://127.0.0.1:${proxy.port}` })).console;
      expect(told).toMatch(/its certificate is not trusted here.*NODE_EXTRA_CA_CERTS/);
    });

    test("warns where it is public without TLS and no proxy is named, and of an operator's port that is public", async () => {
      const port = ways();
      const console = { host: "0.0.0.0", port };
      const url = `http://127.0.0.1:${port}`;
      const addresses = ["127.0.0.1", "203.0.113.5"];
      const ofConsole = async (...given: Parameters<typeof consoleOf>) => (await consoleOf(...given)).console;
      expect(await ofConsole({ console }, { url, addresses })).toMatch(
        /^warning: .*is public at 203.0.113.5 without TLS/,
      );
      expect(await ofConsole({ console, trustedProxies: ["10.0.0.0/8"] }, { url, addresses })).toStartWith("ok");
      expect(await ofConsole({ console }, { url })).toStartWith("ok");
      const operator = { host: "::", port: 9090 };
      const ofMetrics = async (...given: Parameters<typeof consoleOf>) => (await consoleOf(...given)).metrics;
      expect(await ofMetrics({ operator }, { addresses: ["2606:4700::5"] })).toMatch(
        /^warning: .*port 9090 is public at 2606:4700::5/,
      );
      expect(await ofMetrics({ operator: { ...operator, tls: "proxy" } }, { addresses })).toContain(
        "operators' tokens",
      );
      expect(await ofMetrics({ operator })).toStartWith("ok");
      expect(await ofMetrics({ operator: { ...operator, host: "127.0.0.1" } }, { addresses })).toStartWith("ok");
    });
  });

  test("calls an older schema a problem where the server does not migrate it", async () => {
    const inspectDatabase = database({ schema: { is: "older", problem: "the database is older" } });
    const { of, code } = await examined({ inspectDatabase, server: { migrates: false } });
    expect([of("schema").status, of("database").status, code]).toEqual(["problem", "ok", 1]);
  });

  test("compares the schema of an embedded database with this version's while another version serves it, and so does migrate", async () => {
    const dataDir = join(folder, "served");
    const migrations = [{ name: "0001_old", checksum: "sum", additive: false }];
    const actAs = () => () => Promise.reject(new ManagementError("not asked"));
    const { stop } = await adminSocket({ dataDir, actAs, migrations });
    const storage = () => ({ databaseUrl: null, redisUrl: null, dataDir });
    const problem = "an unreleased build made it";
    const compareSchema: Services["compareSchema"] = async (applied) =>
      applied[0]?.name === "0001_old"
        ? { is: "other", problem, newer: [] }
        : { is: "current", problem: null, newer: [] };
    const { of, code } = await examined({ storage, compareSchema });
    expect([of("database").status, of("schema"), code]).toEqual([
      "ok",
      { check: "schema", status: "problem", says: problem },
      1,
    ]);
    const migrated = await shell({ storage, compareSchema }).typed("migrate");
    expect([migrated.code, migrated.out, migrated.err]).toEqual([1, "", expect.stringContaining(problem)]);
    expect((await shell({ storage }).typed("migrate")).out).toBe("The database is up to date.\n");
    await stop();
  });

  test("migrate leaves the newer schema of a running server that this version can use, as it does without a server", async () => {
    const dataDir = join(folder, "newer");
    const storage = () => ({ databaseUrl: null, redisUrl: null, dataDir });
    const actAs = () => () => Promise.reject(new ManagementError("not asked"));
    const known = migrations.map((one) => ({ name: one.name, checksum: checksumOf(one), additive: false }));
    const { compareSchema } = nodeServices({});
    for (const [additive, code, says] of [
      [true, 0, "this version can use it: it has 9999_more"],
      [false, 1, "stop it first (the database is newer"],
    ] as const) {
      const applied = [...known, { name: "9999_more", checksum: "sum", additive }];
      const { stop } = await adminSocket({ dataDir, actAs, migrations: applied });
      const migrated = await shell({ storage, compareSchema }).typed("migrate");
      expect([migrated.code, migrated.out + migrated.err]).toEqual([code, expect.stringContaining(says)]);
      await stop();
    }
  });

  test("warns where the metrics are public", async () => {
    for (const [host, port, status] of [
      ["127.0.0.1", null, "ok"],
      ["localhost", null, "ok"],
      ["::1", null, "ok"],
      ["0.0.0.0", null, "warning"],
      ["::", null, "warning"],
      ["10.0.0.1", null, "warning"],
      ["0.0.0.0", 9090, "ok"],
    ] as const) {
      const operator = port === null ? null : { host: "0.0.0.0", port };
      const { of, code } = await examined({ server: { host, operator } });
      expect([host, port, of("metrics").status, code]).toEqual([host, port, status, 0]);
    }
  });

  test("says how many processes will serve, and warns where they have too little memory", async () => {
    const told = async (workers: number | "auto", memory_bytes: number) =>
      (await examined({ server: { workers }, room: () => ({ cores: 4, memory_bytes }) })).of("workers");
    const GiB = 1024 ** 3;
    expect(await told("auto", 8 * GiB)).toMatchObject({
      status: "ok",
      says: "4 processes share the port, 4 cores to run on",
    });
    expect(await told("auto", 0.6 * GiB)).toMatchObject({ status: "ok", says: expect.stringMatching(/^2 processes/) });
    expect(await told(8, GiB)).toMatchObject({ status: "warning", says: expect.stringContaining("SLUICE_WORKERS") });
    expect(await told(1, GiB)).toBeUndefined();
  });

  test("warns of few descriptors, and says what to do", async () => {
    const { of } = await examined({ upstreams: [], descriptorLimit: () => 1024 });
    expect(of("descriptors")).toMatchObject({ status: "warning", says: expect.stringContaining("ulimit -n") });
  });

  test("a configuration that cannot be used is said, and the rest is looked at all the same", async () => {
    const it = shell({
      environment: { PORT: String(await deadPort()) },
      configuration: () =>
        Promise.reject(new Error("The configuration cannot be used:\n  sluice.yaml:3:5: models[0].id: required")),
    });
    const { code, out } = await it.typed("doctor");
    expect(code).toBe(1);
    expect(out).toContain("The configuration cannot be used: sluice.yaml:3:5: models[0].id: required");
    expect(out).toContain("database");
  });

  test("tells an engine that refuses the key from one that fails, still loads or has another path, and shows no key", async () => {
    for (const [status, verdict, says] of [
      [401, "problem", "refuses the key"],
      [403, "problem", "refuses the key"],
      [404, "warning", "end with /v1"],
      [500, "warning", "engine's log"],
      [503, "warning", "answered 503: it still loads its model, or is overloaded; wait until it is ready"],
    ] as const) {
      let sent: string | null = null;
      const engine = answering(({ headers }) => {
        sent = headers.get("authorization");
        return new Response("engine-secret", { status });
      });
      const { of, findings } = await examined({ upstreams: [at(engine, "engine-secret")] });
      expect(of("engine main")).toMatchObject({ status: verdict, says: expect.stringContaining(says) });
      expect(sent as string | null).toBe("Bearer engine-secret");
      expect(JSON.stringify(findings)).not.toContain("engine-secret");
    }
  });

  test("asks an engine as requests do: with its authority, its client certificate and its headers", async () => {
    const issuer = authority();
    const { certificate: cert, key } = issuer.issue(["127.0.0.1"]);
    const own = issuer.issue(["sluice"]);
    const engine = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert, key, ca: issuer.certificate, requestCert: true, rejectUnauthorized: true },
      fetch: ({ headers }) => new Response("{}", { status: headers.get("x-own") === "1" ? 200 : 401 }),
    });
    servers.push(engine);
    const tls = { ca: issuer.certificate, certificate: { cert: own.certificate, key: own.key } };
    const secured: Upstream = { ...at(engine.port!), url: `https://127.0.0.1:${engine.port}/v1`, tls };
    const says = async (upstream: Upstream) => (await examined({ upstreams: [upstream] })).of("engine main");
    expect(await says({ ...secured, headers: { "x-own": "1" } })).toMatchObject({ status: "ok" });
    expect((await says(secured)).says).toContain("refuses the key");
    const strange = (await says({ ...secured, tls: { ...tls, ca: null } })).says;
    expect(strange).toMatch(/cannot be reached: its certificate is not trusted here .*set tls\.ca_file/);
    expect((await says({ ...secured, tls: { ...tls, certificate: null } })).says).toContain("set tls.certificate_file");
  });

  test("asks an engine by its own protocol: Anthropic's wants its version, and no Bearer", async () => {
    const engine = answering(({ headers }) => {
      if (headers.has("authorization") || headers.get("x-api-key") !== "k") return new Response("", { status: 401 });
      return Response.json({ data: [] }, { status: headers.has("anthropic-version") ? 200 : 400 });
    });
    const claude: Upstream = { ...at(engine, "k"), protocol: "anthropic-messages" };
    expect((await examined({ upstreams: [claude] })).of("engine main")).toMatchObject({ status: "ok" });
  });

  test("says where a name leads that has several addresses, and which of them respond", async () => {
    const server = await startNameServer();
    const headers: string[] = [];
    const port = answering((request) => {
      headers.push(`${request.headers.get("host")} ${request.headers.get("authorization")}`);
      return Response.json({ data: [] });
    });
    const resolve: Resolving = { interval_ms: 5000, addresses_max: 2, family: "all", servers: [server.at] };
    const says = async (host: string, ipv4: string[] | null) => {
      server.names.set(host, ipv4 ? { ipv4 } : { says: "failure" });
      const named = { ...at(port, "k"), url: `http://${host}:${port}/v1`, resolve };
      const { status, says } = (await examined({ upstreams: [named] })).of("engine main");
      return `${status} ${says}`;
    };
    expect(await says("engines.localhost", ["127.0.0.1"])).toMatch(
      /^ok .* has one address, and each responds: 127\.0\.0\.1$/,
    );
    expect(headers[0]).toBe(`engines.localhost:${port} Bearer k`);
    expect(await says("engines.localhost", ["127.0.0.1", "127.0.0.9"])).toMatch(
      /^warning .*do not respond: 127\.0\.0\.9$/,
    );
    expect(await says("engines.localhost", ["127.0.0.9"])).toMatch(/^problem .*none responds: 127\.0\.0\.9$/);
    const secured = { ...at(port), url: `https://engines.localhost:${port}/v1`, resolve };
    expect((await examined({ upstreams: [secured] })).of("engine main").says).toMatch(/127\.0\.0\.9$/);
    server.names.set("engines.localhost", { ipv4: ["127.0.0.1"] });
    expect((await examined({ upstreams: [secured] })).of("engine main").says).toContain("127.0.0.1 (there is no TLS");
    const three = ["127.0.0.1", "127.0.0.8", "127.0.0.9"];
    expect(await says("engines.localhost", three)).toContain("has 2 addresses");
    expect(await says("engines.test", ["127.0.0.1"])).toMatch(/^problem .*leads to this machine/);
    expect(await says("engines.localhost", [])).toMatch(/^problem .*has no address/);
    expect(await says("engines.localhost", null)).toMatch(/^problem .*cannot be resolved/);
    await server.stop();
  });

  test("says what the embedded database needs: a folder that can be made and written", async () => {
    const storage = (dataDir: string) => () => ({ databaseUrl: null, redisUrl: null, dataDir });
    const fresh = await examined({ storage: storage(join(folder, "not/there/yet")) });
    expect(fresh.of("storage").says).toContain("first start");
    expect(fresh.of("database").says).toContain("first start");
    writeFileSync(join(folder, "file"), "");
    const file = await examined({ storage: storage(join(folder, "file/data")) });
    expect(file.of("storage")).toMatchObject({ status: "problem", says: expect.stringContaining("SLUICE_DATA_DIR") });
  });

  test("the built-in engine needs no look, and an empty folder stays empty", async () => {
    const empty = mkdtempSync(join(folder, "empty-"));
    const { code, of } = await examined({
      upstreams: [{ ...at(1), name: "simulator", url: "http://simulator.invalid/v1" }],
      storage: () => ({ databaseUrl: null, redisUrl: null, dataDir: empty }),
      inspectDatabase: () => Promise.reject(new Error("must not be opened")),
    });
    expect(code).toBe(0);
    expect(of("engine simulator").says).toContain("built in");
    expect(of("database").says).toContain("first start");
    expect(readdirSync(empty)).toEqual([]);
    // A newly created file system has the folder lost+found, and still has no database.
    mkdirSync(join(empty, "lost+found"));
    const mounted = await examined({
      storage: () => ({ databaseUrl: null, redisUrl: null, dataDir: empty }),
      inspectDatabase: () => Promise.reject(new Error("must not be opened")),
    });
    expect(mounted.of("database").says).toContain("first start");
  });

  test("a server that is up and not ready is a warning with its reason", async () => {
    const checks = { catalog: "empty" };
    const PORT = String(answering(() => Response.json({ status: "not_ready", checks }, { status: 503 })));
    const { of, code } = await examined({ environment: { PORT } });
    expect(code).toBe(0);
    expect(of("server")).toMatchObject({ status: "warning", says: expect.stringContaining("catalog: empty") });
  });

  test("warns of a fleet without Redis, by how much it may miss limits a minute", async () => {
    const examinedWith = (processes: number, redisUrl: string | null) =>
      examined({
        storage: () => ({ databaseUrl: "postgres://x", redisUrl, dataDir: folder }),
        inspectDatabase: database({ processes }),
        inspectRedis: () => Promise.reject(new Error("redis does not answer")),
      });
    const factor = expect.stringContaining("each of the 3 processes of the fleet");
    expect((await examinedWith(1, null)).of("redis").status).toBe("ok");
    expect((await examinedWith(3, null)).of("redis")).toMatchObject({ status: "warning", says: factor });
    expect((await examinedWith(3, "redis://x")).of("redis")).toMatchObject({ status: "problem", says: factor });
    expect((await examinedWith(1, "redis://x")).of("redis").says).toBe("redis does not answer");
  });

  test("warns where nobody can administer: by the database, and where a server holds it by that server", async () => {
    const administrators = "nobody can administer over the network since 2026-11-27 10:00 UTC";
    const warned = { check: "administrators", status: "warning", says: administrators };
    const byDatabase = await examined({ inspectDatabase: database({ administrators }) });
    expect([byDatabase.code, byDatabase.of("administrators")]).toEqual([0, warned]);
    const checks = { database: "ok", administrators: `warning: ${administrators}` };
    const PORT = String(
      answering(({ url }) => Response.json({ status: "ready", checks: url.endsWith("/readyz?verbose") ? checks : {} })),
    );
    const byServer = await examined({ environment: { PORT } });
    expect([byServer.code, byServer.of("administrators")]).toEqual([0, warned]);
    expect(byServer.of("server").status).toBe("ok");
    expect((await examined({})).of("administrators")).toBeUndefined();
  });
});
