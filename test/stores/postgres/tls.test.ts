// TLS to a real Postgres, in each sslmode: the client accepts and refuses the same servers as libpq.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { type Authority, authority, daysFromNow, written } from "../../harness/certificates.ts";
import { account } from "../../harness/daemon.ts";
import { type Service, startPostgres } from "../../harness/services.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-test-tls-"));
let ours: Authority;
let server: Service;
let plain: Service;
let port: number;
let files: { ca: string; other: string; client: { certificate: string; key: string }; stranger: typeof files.client };

/** Postgres requires that its user owns the file with its private key. */
const owned = (path: string) => account.uid !== undefined && chownSync(path, account.uid, account.gid!);

beforeAll(async () => {
  ours = authority();
  const other = authority("somebody else's authority");
  files = {
    ca: written(folder, "ca", ours).certificate,
    other: written(folder, "other", other).certificate,
    client: written(folder, "client", ours.issue(["certified"])),
    stranger: written(folder, "stranger", other.issue(["certified"])),
  };
  server = await startPostgres(undefined, (data) => {
    const { certificate, key } = written(data, "server", ours.issue(["localhost"]), owned);
    const access = ["hostssl all certified 127.0.0.1/32 cert", "hostssl all private 127.0.0.1/32 trust"];
    const rest = ["host all certified,private 127.0.0.1/32 reject", readFileSync(join(data, "pg_hba.conf"), "utf8")];
    writeFileSync(join(data, "pg_hba.conf"), [...access, ...rest].join("\n"));
    writeFileSync(join(data, "ca.crt"), ours.certificate);
    return ["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`, `ssl_ca_file=${join(data, "ca.crt")}`];
  });
  port = Number(new URL(server.url).port);
  const db = await serverDatabase(server.url);
  await db.exec("create role certified login; create role private login");
  await db.close();
  plain = await startPostgres();
});
afterAll(async () => {
  await Promise.all([server.stop(), plain.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** Connects. Returns whether the session is encrypted, or the text of the error. */
async function tried(
  query: string,
  { user = "postgres", host = "localhost", at = port } = {},
): Promise<boolean | string> {
  try {
    const db = await serverDatabase(`postgres://${user}:hunter2@${host}:${at}/postgres${query}`, {
      connect_ms: 10_000,
    });
    try {
      const [row] = await db.query<{ ssl: boolean }>("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
      return row!.ssl;
    } finally {
      await db.close();
    }
  } catch (error) {
    expect(Bun.inspect(error)).not.toContain("hunter2");
    return String(error);
  }
}

describe("a server that offers TLS", () => {
  test("is spoken to privately without being asked", async () => {
    expect(await tried("")).toBeTrue();
    expect(await tried("?sslmode=prefer", { user: "private" })).toBeTrue();
    expect(await tried("?sslmode=allow", { user: "private" })).toBeTrue();
    expect(await tried("?sslmode=require", { user: "private" })).toBeTrue();
  });

  test("is spoken to in the clear with `disable`", async () => {
    expect(await tried("?sslmode=disable")).toBeFalse();
    expect(await tried("?sslmode=disable", { user: "private" })).toContain("pg_hba.conf");
  });

  test("is looked at with authorities: theirs serves, another's does not", async () => {
    for (const mode of ["sslmode=verify-ca&", "sslmode=require&", ""]) {
      expect(await tried(`?${mode}sslrootcert=${files.ca}`)).toBeTrue();
      expect(await tried(`?${mode}sslrootcert=${files.other}`)).toContain("do not vouch for");
    }
    expect(await tried("?sslrootcert=system")).toContain("do not vouch for");
  });

  test("must bear the name that was called with `verify-full` alone", async () => {
    expect(await tried(`?sslmode=verify-full&sslrootcert=${files.ca}`)).toBeTrue();
    expect(await tried(`?sslmode=verify-full&sslrootcert=${files.ca}`, { host: "127.0.0.1" })).toContain(
      "another name",
    );
    expect(await tried(`?sslmode=verify-ca&sslrootcert=${files.ca}`, { host: "127.0.0.1" })).toBeTrue();
  });

  test("sees who we are", async () => {
    const as = ({ certificate, key }: typeof files.client) =>
      tried(`?sslmode=require&sslcert=${certificate}&sslkey=${key}`, { user: "certified" });
    expect(await as(files.client)).toBeTrue();
    expect(await as(files.stranger)).toBeString();
    expect(await tried("?sslmode=require", { user: "certified" })).toContain("certificate");
  });
});

test("a server without TLS is spoken to in the clear, unless the mode forbids it", async () => {
  const at = Number(new URL(plain.url).port);
  expect(await tried("", { at })).toBeFalse();
  expect(await tried("?sslmode=allow", { at })).toBeFalse();
  expect(await tried("?sslmode=require", { at })).toContain("does not offer TLS");
  expect(await tried(`?sslmode=verify-full&sslrootcert=${files.ca}`, { at })).toContain("does not offer TLS");
});

test("an expired certificate is none", async () => {
  const late = authority("late");
  const expired = late.issue(["localhost"], { to: daysFromNow(-0.5) });
  const own = await startPostgres(undefined, (data) => {
    const { certificate, key } = written(data, "server", expired, owned);
    return ["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`];
  });
  const ca = written(folder, "late", late).certificate;
  const at = Number(new URL(own.url).port);
  expect(await tried(`?sslmode=verify-ca&sslrootcert=${ca}`, { at })).toContain("CERT_HAS_EXPIRED");
  expect(await tried("?sslmode=require", { at })).toBeTrue();
  await own.stop();
});

test("a start waits for a server that broke off, and for none that does not fit", async () => {
  const breaking = createServer((socket) => void socket.once("data", () => socket.destroy()));
  await new Promise<void>((resolve) => breaking.listen(0, "127.0.0.1", resolve));
  const { port: at } = breaking.address() as { port: number };
  const codeOf = (query: string, { user = "postgres", at = port } = {}) =>
    serverDatabase(`postgres://${user}@localhost:${at}/postgres${query}`).then(
      () => null,
      ({ code }: { code: string }) => code,
    );
  const { certificate, key } = files.stranger;
  expect(await codeOf("?sslmode=require", { at })).toBe("unavailable");
  expect(await codeOf(`?sslmode=require&sslcert=${certificate}&sslkey=${key}`, { user: "certified" })).toBe("tls");
  expect(await codeOf(`?sslrootcert=${files.other}`)).toBe("tls");
  expect(await codeOf("?sslmode=require", { at: Number(new URL(plain.url).port) })).toBe("tls");
  breaking.close();
});

test("a file that cannot be used is named by the option that names it", async () => {
  const { certificate, key } = files.client;
  const missing = join(folder, "missing.pem");
  const refusal = (query: string) => tried(`?sslmode=require&${query}`);
  expect(await refusal(`sslrootcert=${missing}`)).toContain(`its sslrootcert cannot be read: ${missing}`);
  expect(await refusal(`sslcert=${missing}&sslkey=${key}`)).toContain(`its sslcert cannot be read: ${missing}`);
  expect(await refusal(`sslcert=${certificate}&sslkey=${missing}`)).toContain(`its sslkey cannot be read: ${missing}`);
});

test("a renewed file serves the next connection", async () => {
  const file = join(folder, "changing.crt");
  writeFileSync(file, ours.certificate);
  const db = await serverDatabase(
    `postgres://postgres@localhost:${port}/postgres?sslmode=verify-full&sslrootcert=${file}`,
  );
  const lane = async () => {
    const one = await db.lane({});
    return one.query("select 1").finally(() => one.close());
  };
  await lane();
  writeFileSync(file, readFileSync(files.other));
  await expect(lane()).rejects.toThrow("do not vouch for");
  appendFileSync(file, ours.certificate);
  await lane();
  await db.close();
});

test("what a stranger puts behind the server's word in the clear is not read", async () => {
  const sockets: Socket[] = [];
  const liar = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    socket.once("data", () => socket.write("Sinjected"));
  });
  await new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve));
  const { port: at } = liar.address() as { port: number };
  expect(await tried("?sslmode=require", { at, host: "127.0.0.1" })).toContain("does not answer as Postgres does");
  for (const socket of sockets) socket.destroy();
  liar.close();
});
