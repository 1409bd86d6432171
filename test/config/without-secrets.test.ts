// The configuration as it is shown: what is in force, and no secret in any place that can have one.
import { expect, test } from "bun:test";
import { loadConfiguration } from "../../src/config/load.ts";
import { shownConfiguration } from "../../src/config/without-secrets.ts";

const secrets = [
  "engine-secret",
  "header-secret",
  "client-secret",
  "query-secret",
  "database-secret",
  "redis-secret",
  "mail-secret",
];
const yaml = `
upstreams:
  gpu-1:
    url: http://gpu.example/v1
    api_key: engine-secret
    headers: { x-token: header-secret }
smtp: { host: smtp.example, from: sluice@acme.example, user: sluice, password: mail-secret }
telemetry:
  endpoint: http://collector.example
  headers: { x-token: header-secret }
identity:
  service_url: https://sluice.example
  issuers:
    - { issuer: https://login.example, client_id: sluice, client_secret: client-secret, parameters: { hint: query-secret } }
  rules:
    - { claim: groups, has: platform, role: admin }
`;

test("shows what is in force, with the defaults, and of secrets only whether there is one", () => {
  const env = {
    DATABASE_URL: "postgres://user:database-secret@db:5432/sluice",
    REDIS_URL: "redis://:redis-secret@redis:6379",
    SLUICE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  const bytes = new TextEncoder().encode(yaml);
  const read = (path: string) => (path === "./sluice.yaml" ? bytes : null);
  const configuration = loadConfiguration({ env, readFile: read, simulatorUrl: "http://127.0.0.1:1/v1" });
  if (configuration instanceof Error) throw configuration;
  const shown = shownConfiguration(configuration);
  const text = JSON.stringify(shown);
  for (const secret of [...secrets, env.SLUICE_SECRET_KEY]) expect(text).not.toContain(secret);
  expect(shown).toMatchObject({
    storage: { database: "postgres", hasRedis: true },
    upstreams: [{ name: "gpu-1", url: "http://gpu.example/v1", hasKey: true, headers: ["x-token"] }],
    identity: { issuers: [{ hasClientSecret: true }], rules: [{ claim: "groups", has: "platform", role: "admin" }] },
    smtp: { host: "smtp.example", user: "sluice", hasPassword: true },
    settings: { log: { level: "info" } },
  });
});
