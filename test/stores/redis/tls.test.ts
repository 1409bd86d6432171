// rediss:// to a real Redis: its certificate is verified, the client's certificate is sent, and a renewed file is used
// for the next connection.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { tlsTexts } from "../../../src/config/certificate.ts";
import { readFileBounded } from "../../../src/config/source.ts";
import { type RedisTls, redisConnection } from "../../../src/stores/redis/connection.ts";
import { authority, type Identity, written } from "../../harness/certificates.ts";
import { account, freePort } from "../../harness/daemon.ts";
import { type Service, startRedis } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-test-rediss-"));
const ours = authority();
const other = authority("somebody else's authority");
const me = ours.issue(["a node"]);
let server: Service;
let url: string;
/** A connection without TLS, with which the test ends other connections. */
let operator: Redis;

/** Redis requires that its user can read the file with its private key. */
const owned = (path: string) => account.uid !== undefined && chownSync(path, account.uid, account.gid!);

beforeAll(async () => {
  const port = await freePort();
  server = await startRedis(undefined, (own) => {
    const { certificate, key } = written(own, "server", ours.issue(["localhost"]), owned);
    const { certificate: ca } = written(own, "ca", ours, owned);
    return {
      ...{ "--tls-port": port, "--tls-cert-file": certificate, "--tls-key-file": key, "--tls-ca-cert-file": ca },
    };
  });
  url = `rediss://localhost:${port}`;
  operator = new Redis(server.url);
});
afterAll(async () => {
  operator.disconnect();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const as = (ca: Identity, who: Identity | null): RedisTls => ({
  ca: ca.certificate,
  ...(who ? { cert: who.certificate, key: who.key } : {}),
});

/** The error of a connection; null if it succeeded. */
async function tried(tls: () => RedisTls, at = url): Promise<string | null> {
  let said = "";
  const redis = redisConnection(at, (cause) => (said += String(cause)), tls);
  try {
    await redis.ping(10_000);
    const one = redis.script("return 1");
    expect(await one(["{a}"], [])).toBe(1);
    return null;
  } catch (error) {
    return `${said} ${error}`;
  } finally {
    redis.close();
  }
}

const refused = (tls: () => RedisTls, at = url): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const redis = redisConnection(at, (cause) => resolve(String(cause)), tls);
  return promise.finally(() => redis.close());
};

test("an own authority and a client's certificate serve", async () => {
  expect(await tried(() => as(ours, me))).toBeNull();
});

test("a server of another authority, or of another name, is refused", async () => {
  expect(await refused(() => as(other, me))).toMatch(/certificate/i);
  expect(await refused(() => ({ cert: me.certificate, key: me.key }))).toMatch(/certificate/i);
  expect(await refused(() => as(ours, me), url.replace("localhost", "127.0.0.1"))).toMatch(/altname|ERR_TLS|match/i);
});

test("the server refuses whom it does not know", async () => {
  expect(await refused(() => as(ours, other.issue(["a node"])))).toBeString();
  expect(await refused(() => as(ours, null))).toBeString();
});

test("a renewed file serves the next connection, and half a file changes nothing", async () => {
  const files = written(folder, "node", me);
  const caFile = written(folder, "ca", ours).certificate;
  const identity = { certificateFile: files.certificate, keyFile: files.key };
  const texts = tlsTexts({ caFile, identity }, readFileBounded);
  const failures: unknown[] = [];
  const redis = redisConnection(url, (cause) => failures.push(cause), texts);
  await redis.ping(10_000);
  const again = async () => {
    await operator.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const pings = () =>
      redis.ping(1000).then(
        () => true,
        () => false,
      );
    await until(pings, 20_000, "a new connection");
  };
  writeFileSync(files.key, "half");
  await again();
  const next = ours.issue(["a node"]);
  written(folder, "node", next);
  await again();
  expect(texts().cert).toBe(next.certificate);
  const failed = failures.length;
  writeFileSync(caFile, other.certificate);
  await operator.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await until(() => failures.length > failed, 20_000, "the server to be a stranger");
  redis.close();
});
