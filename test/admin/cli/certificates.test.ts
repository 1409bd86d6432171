// Tests of `sluice doctor` with real certificates: those of a server, of Postgres and in files.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { judged } from "../../../src/admin/cli/certificates.ts";
import { described } from "../../../src/config/certificate.ts";
import { readFileBounded } from "../../../src/config/source.ts";
import { certificatesOf } from "../../../src/node/certificates.ts";
import { configured } from "../../config/reading.ts";
import { authority, daysFromNow, written } from "../../harness/certificates.ts";
import { account } from "../../harness/daemon.ts";
import { type Service, startPostgres } from "../../harness/services.ts";
import { doctorOf, shell } from "./shell.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-test-doctor-"));
const ours = authority();
let postgres: Service;
let engine: Server;

beforeAll(async () => {
  postgres = await startPostgres(undefined, (data) => {
    const owned = (path: string) => account.uid !== undefined && chownSync(path, account.uid, account.gid!);
    const files = written(data, "server", ours.issue(["db.example"]), owned);
    return ["ssl=on", `ssl_cert_file=${files.certificate}`, `ssl_key_file=${files.key}`];
  });
  const { certificate, key } = ours.issue(["localhost"], { to: daysFromNow(-1) });
  engine = createServer({ cert: certificate, key }, (socket) => void socket.on("error", () => {}).end());
  engine.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  engine.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("what it finds: soon expired, of another name, expired, and as it should be", async () => {
  const soon = written(folder, "soon", ours.issue(["localhost"], { to: daysFromNow(13.5) }));
  const client = written(folder, "client", ours.issue(["a node"]));
  const { port } = engine.address() as { port: number };
  const env = {
    DATABASE_URL: `${postgres.url}?sslcert=${client.certificate}&sslkey=${client.key}`,
    SLUICE_TLS_CERTIFICATE_FILE: soon.certificate,
    SLUICE_TLS_KEY_FILE: soon.key,
    SLUICE_UPSTREAM_URL: `https://localhost:${port}/v1`,
  };
  const configuration = configured(null, env, readFileBounded);
  const it = shell({ configuration: async () => configuration, certificates: certificatesOf, now_ms: Date.now });
  const { findings } = await doctorOf(it);
  const ofCertificates = findings
    .filter(({ check }) => check.startsWith("certificate "))
    .map(({ check, status, says }) => `${check.slice("certificate ".length)}: ${status}: ${says}`);
  expect(ofCertificates.toSorted()).toEqual([
    expect.stringMatching(/^for the database: ok: for a node, until \d{4}-\d\d-\d\d$/),
    expect.stringMatching(/^of engine environment: problem: expired on /),
    "of the database: warning: is for db.example, not for 127.0.0.1",
    expect.stringMatching(/^of this server: warning: expires on \d{4}-\d\d-\d\d, in 13 days; renew it$/),
  ]);
});

test("an engine's client certificate and that of a proxy in front end, too", async () => {
  const own = written(folder, "shown", ours.issue(["a node"], { to: daysFromNow(5.5) }));
  const { port } = engine.address() as { port: number };
  const text = `
upstreams:
  gpu:
    url: https://127.0.0.1:9/v1
    replicas: [https://127.0.0.1:10/v1]
    tls: { certificate_file: ${own.certificate}, key_file: ${own.key} }
identity: { service_url: https://localhost:${port}, console_url: https://localhost:${port} }
`;
  const env = { SLUICE_SECRET_KEY: Buffer.alloc(32).toString("base64") };
  const configuration = configured(text, env, readFileBounded);
  const told = (await certificatesOf(configuration)).map((one) => [one.whose, judged(one, Date.now())] as const);
  expect(told.map(([whose, { status, says }]) => `${whose}: ${status}: ${says.split(" on ")[0]}`)).toEqual([
    "for engine gpu: warning: expires",
    "of identity.service_url: problem: expired",
    "of identity.console_url: problem: expired",
  ]);
});

test("the server's own is for the name that it listens under, and any name will do for an address", async () => {
  const own = written(folder, "own", ours.issue(["sluice.example"], {}));
  const hostAt = async (HOST: string) => {
    const env = { HOST, SLUICE_TLS_CERTIFICATE_FILE: own.certificate, SLUICE_TLS_KEY_FILE: own.key };
    return (await certificatesOf(configured(null, env, readFileBounded))).map(({ host }) => host);
  };
  expect(await Promise.all(["sluice.example", "10.0.0.5", "0.0.0.0", "[::1]", "localhost"].map(hostAt))).toEqual([
    ["sluice.example"],
    ...[[null], [null], [null], [null]],
  ]);
});

test("one that begins later is a problem, too", () => {
  const { certificate } = ours.issue(["localhost"], { from: daysFromNow(1) });
  const seen = { whose: "of this server", host: null, ...described(certificate) };
  expect(judged(seen, Date.now()).status).toBe("problem");
  expect(judged(seen, daysFromNow(2).getTime()).status).toBe("ok");
});
