// Prepares the state that a page assumes before its first command.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { freePort } from "../harness/daemon.ts";
import { startIssuer } from "../harness/issuer.ts";
import { secretKey } from "../harness/people-node.ts";
import { freshDatabase, postgresUrl } from "../harness/services.ts";
import { demoKey, type Reader } from "./reader.ts";

type Preparation = (reader: Reader) => Promise<void>;

const started: Preparation = async (reader) => {
  await reader.types("sluice serve");
  const key = await firstKey(reader);
  reader.env.SLUICE_KEY = key;
  reader.values.push(["slk_…", key]);
};

/** Creates a key for the reader. Only a node without a sluice.yaml creates one itself, for its demo organization. */
async function firstKey(reader: Reader): Promise<string> {
  if (!existsSync(join(reader.folder, "sluice.yaml"))) return demoKey(reader);
  await reader.types("sluice org create first --plan unlimited");
  return (await reader.json<{ key: string }>("key create --org first --name first")).key;
}

const acme: Preparation = async (reader) => {
  await started(reader);
  await reader.types("sluice org create acme --plan unlimited");
};

async function databaseOf(reader: Reader): Promise<URL> {
  const { url, drop } = await freshDatabase();
  reader.ends.push(drop);
  return new URL(url);
}

/**
 * Creates the role of deploy/roles.sql under a name of its own, because roles belong to the whole Postgres server,
 * which other tests use at the same time.
 */
async function withRole(reader: Reader): Promise<string> {
  const role = `sluice_run_${crypto.randomUUID().slice(0, 8)}`;
  const sql = postgres(await postgresUrl(), { max: 1 });
  await sql.unsafe(`create role ${role} login`);
  reader.ends.push(() => sql.unsafe(`drop role ${role}`).then(() => sql.end()));
  const grants = join(reader.folder, "deploy/roles.sql");
  writeFileSync(grants, readFileSync(grants, "utf8").replaceAll("sluice_run", role));
  return role;
}

/** Starts an issuer that knows Ann as a member of its group `research`. Returns a token of hers. */
async function withIssuer(reader: Reader): Promise<string> {
  const issuer = await startIssuer();
  reader.ends.push(() => issuer[Symbol.asyncDispose]());
  reader.env.SLUICE_SECRET_KEY = secretKey;
  const identity = `
identity:
  service_url: ${reader.url}
  console_url: http://localhost:8082
  issuers: [{ issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }]
  rules: [{ claim: groups, has: research, organization: acme, role: member }]
`;
  writeFileSync(join(reader.folder, "sluice.yaml"), identity);
  const claims = { email: "ann@example.com", email_verified: true, groups: ["research"] };
  return issuer.sign({ sub: "ann", aud: "sluice-api", ...claims });
}

export const preparations: Record<string, Preparation> = {
  "README.md": async (reader) => {
    await started(reader);
    const { id } = await reader.json<{ id: string }>("key create --org demo --name laptop");
    reader.values.push(
      ["key_…", id],
      ["postgres://…", (await databaseOf(reader)).href],
      // The node runs without Redis, and counts rates in its own memory.
      ["REDIS_URL=redis://…", "REDIS_URL="],
    );
  },
  "docs/afternoon.md": async (reader) => {
    const token = await withIssuer(reader);
    await started(reader);
    // A person is created at the first request, so Ann's is sent before the command that raises her limit.
    const comes = `curl -s ${reader.url}/v1/models -H 'authorization: Bearer ${token}'`;
    reader.values.push(["sluice limit raise", `${comes} && sluice limit raise`]);
  },
  "docs/first-request.md": async (reader) => {
    await started(reader);
    reader.values.push(["https://sluice.example", reader.url]);
  },
  "docs/databases.md": async (reader) => {
    const url = await databaseOf(reader);
    const name = url.pathname.slice(1);
    const server = { PGHOST: url.hostname, PGPORT: url.port, PGUSER: url.username, PGPASSWORD: url.password };
    Object.assign(reader.env, { DATABASE_URL: url.href, ...server });
    await withRole(reader);
    await reader.types("sluice serve");
    await reader.types("sluice org create acme --plan unlimited");
    await reader.stops();
    mkdirSync(join(reader.folder, "data"), { recursive: true });
    // The page restores a backup after a disaster, so the database is dropped first.
    reader.values.push(["createdb sluice", `dropdb ${name} && createdb ${name}`]);
  },
  "docs/identity.md": async (reader) => {
    writeFileSync(join(reader.folder, "token.jwt"), await withIssuer(reader));
    await acme(reader);
    reader.values.push(
      ["SLUICE_CONSOLE_PORT=8082", `SLUICE_CONSOLE_PORT=${await freePort()}`],
      ["SLUICE_SECRET_KEY=…", `SLUICE_SECRET_KEY=${secretKey}`],
      ["OIDC_CLIENT_SECRET=…", "OIDC_CLIENT_SECRET=secret"],
    );
  },
  "docs/limits.md": async (reader) => {
    const token = await withIssuer(reader);
    await acme(reader);
    await fetch(`${reader.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
    await reader.types("sluice team create --org acme --name research");
    reader.values.push(["raise ann ", "raise ann@example.com "]);
  },
  "docs/management.md": async (reader) => {
    const token = await withIssuer(reader);
    await acme(reader);
    await fetch(`${reader.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
    const [person] = await reader.json<{ id: string }[]>("person list");
    await reader.types("sluice plan create silver --limit week=90,month=900");
    await reader.types("sluice org plan acme silver");
    await reader.types("sluice team create --org acme --name research --limit week=0.0009,concurrent_requests=4");
    await reader.types(`sluice limit set ${person!.id} month=0.009 --org acme`);
    const key = await reader.json<{ id: string }>("key create --org acme --name ann --limit week=0.0009");
    const head = (await reader.types("sluice audit head")).trim();
    const port = await freePort();
    reader.values.push(
      [/key_[0-9a-f]{32}/g, key.id],
      [/per_[0-9a-f]{32}/g, person!.id],
      ["--from 120:9f2c… --to 480:77ab…", `--from ${head}`],
      // The end of a raise (a temporary increase of a limit) must be in the future, and within a year.
      ["2026-12-24", new Date(Date.now() + 28 * 86_400_000).toISOString().slice(0, 10)],
      ["SLUICE_OPERATOR_PORT=9090", `SLUICE_OPERATOR_PORT=${port}`],
      ["https://sluice.example:9090", `http://127.0.0.1:${port}`],
      // Without a terminal, the command cannot ask for confirmation. It closes the organization for good, and the page
      // goes on with another one.
      ["org close acme-eu", "org close acme-eu --yes"],
      ["sluice org plan acme gold", "sluice org create globex --plan silver && sluice org plan globex gold"],
      // A reader would copy the token from the terminal.
      ["create ann --role admin", "create ann --role admin --json | grep -Eo 'slo_[^\"]{30,}' >~/.sluice-token"],
    );
  },
  "docs/notices.md": async (reader) => {
    await acme(reader);
    Object.assign(reader.env, { timestamp: "1764137600", body: "{}", secret: "secret" });
  },
  "docs/operating.md": async (reader) => {
    await acme(reader);
    const owner = await databaseOf(reader);
    const run = new URL(owner);
    run.username = await withRole(reader);
    reader.values.push(
      ["postgres://sluice_owner:…@db/sluice", owner.href],
      ["postgres://sluice_run:…@db/sluice", run.href],
    );
  },
  "docs/protocols.md": started,
  "docs/reports.md": async (reader) => {
    const reports = "metering: { currency: EUR }\n";
    writeFileSync(join(reader.folder, "sluice.yaml"), reports);
    await acme(reader);
  },
  "docs/start.md": async (reader) => {
    await started(reader);
    const { id } = await reader.json<{ id: string }>("key create --org demo --name laptop");
    reader.values.push(["key_…", id]);
  },
};
