// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tests need `${…}` in plain strings
/**
 * Secrets in configuration files: their format, the errors for malformed ones, and that no error message contains a
 * secret. The configuration as it is shown contains none. Secrets in the database can be decrypted with the current key
 * or the previous one, and only for the purpose for which they were encrypted (`about`).
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import type { Configuration } from "../../src/config/configuration.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigurationError } from "../../src/config/problem.ts";
import { reloadable } from "../../src/config/reload.ts";
import { sealing, secretKeysIn } from "../../src/config/sealed.ts";
import { readFileBounded } from "../../src/config/source.ts";
import { shownConfiguration } from "../../src/config/without-secrets.ts";
import { configured, type Variables } from "./reading.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-test-secrets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const secret = "hunter2-hunter2";

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function loaded(env: Variables, yaml?: string): Configuration | ConfigurationError {
  const SLUICE_CONFIG = yaml === undefined ? undefined : file("sluice.yaml", yaml);
  const nowhere = join(folder, "no-sluice.yaml");
  const readFile = (path: string) => readFileBounded(path.startsWith("./sluice.y") ? nowhere : path);
  return loadConfiguration({ env: { ...env, SLUICE_CONFIG }, readFile });
}

function problems(env: Variables, yaml?: string): readonly string[] {
  const result = loaded(env, yaml);
  expect(Bun.inspect(result)).not.toContain(secret);
  return result instanceof ConfigurationError ? result.problems : [];
}

const withKey = (key: string) => `upstreams: { main: { url: "http://127.0.0.1:9000", api_key: "${key}" } }`;

test("variables name files: the line break at the end is none of the secret", () => {
  const configuration = loaded({
    DATABASE_URL_FILE: file("database", `postgres://ann:${secret}@db/books\n`),
    REDIS_URL_FILE: file("redis", `redis://:${secret}@cache:6379\r\n`),
    SLUICE_UPSTREAM_KEY_FILE: file("key", `${secret}\n`),
    SLUICE_UPSTREAM_URL: "http://127.0.0.1:9000",
  }) as Configuration;
  expect(configuration.storage).toMatchObject({
    databaseUrl: `postgres://ann:${secret}@db/books`,
    redisUrl: `redis://:${secret}@cache:6379`,
  });
  expect(configuration.upstreams[0]?.apiKey).toBe(secret);
});

test("sluice.yaml names files, and variables whose value stands in one", () => {
  const key = (yaml: string, env: Variables = {}) => (loaded(env, yaml) as Configuration).upstreams[0]?.apiKey;
  const path = file("key", `${secret}\n`);
  expect(key(withKey(`\${file:${path}}`))).toBe(secret);
  expect(key(withKey(`pre-\${file:${path}}-post`))).toBe(`pre-${secret}-post`);
  expect(key(withKey("${SLUICE_UPSTREAM_KEY}"), { SLUICE_UPSTREAM_KEY_FILE: path })).toBe(secret);
  expect(key(withKey("$${file:/x}"))).toBe("${file:/x}");
});

describe("a file that holds no secret is refused by name", () => {
  mkdirSync(join(folder, "a-folder"));
  const closed = file("closed", secret);
  chmodSync(closed, 0);
  const wrong: [string, string][] = [
    [join(folder, "missing"), "which does not exist"],
    [file("empty", "\n"), "which is empty"],
    [join(folder, "a-folder"), "which cannot be read: it is a folder"],
    [file("large", secret.repeat(5000)), "which is larger than 64 KiB"],
    [file("binary", new Uint8Array([0xff, 0xfe, 0])), "which is not UTF-8 text"],
  ];
  // Root can read every file, so this case is skipped for root.
  if (process.getuid?.() !== 0) wrong.push([closed, "which cannot be read: this user cannot read it"]);
  test.each(wrong)("%s: %s", (path, why) => {
    for (const name of ["DATABASE_URL_FILE", "REDIS_URL_FILE", "SLUICE_UPSTREAM_KEY_FILE"])
      expect(problems({ [name]: path })).toEqual([`${name} names ${path}, ${why}`]);
    expect(problems({}, withKey(`\${file:${path}}`))[0]).toEndWith(
      `:1:61: upstreams.main.api_key: names \${file:${path}}, ${why}`,
    );
  });

  test("a file that this user cannot read is refused with that reason", () => {
    const refusing = () => {
      throw Object.assign(new Error("no"), { code: "EACCES" });
    };
    const result = loadConfiguration({
      env: { DATABASE_URL_FILE: "/run/secrets/url" },
      readFile: (path) => (path.startsWith("/run") ? refusing() : null),
    });
    expect(String(result)).toContain("DATABASE_URL_FILE names /run/secrets/url, which cannot be read: this user");
  });

  test("no path at all, or the same secret twice", () => {
    expect(problems({}, withKey("${file:}"))[0]).toEndWith("names ${file:}, which needs the path of a file");
    const both = { DATABASE_URL: "postgres://h/d", DATABASE_URL_FILE: file("database", "postgres://h/d") };
    expect(problems(both)).toEqual(["DATABASE_URL_FILE and DATABASE_URL are both set; remove one"]);
  });

  test("its content is checked like that of the variable, and never shown", () => {
    expect(problems({ DATABASE_URL_FILE: file("database", secret) })[0]).toStartWith(
      "DATABASE_URL must be a URL such as",
    );
    expect(problems({}, withKey(`\${file:${file("key", `${secret} and more`)}}`))[0]).toContain("contains a space");
  });
});

test("a reload reads the files again: engines' keys apply at once, addresses at the next start", async () => {
  const key = file("key", "first\n");
  const database = file("database", "postgres://h/first");
  const load = () => loaded({ DATABASE_URL_FILE: database }, withKey(`\${file:${key}}`));
  const configuration = reloadable(load() as Configuration, { load });
  file("key", "second\n");
  file("database", "postgres://h/second");
  expect(await configuration.reload()).toMatchObject({ ok: true });
  expect(configuration.current().upstreams[0]?.apiKey).toBe("second");
  expect(configuration.current().storage.databaseUrl).toBe("postgres://h/first");
  expect(configuration.current().notices).toEqual([expect.stringContaining("DATABASE_URL_FILE or REDIS_URL_FILE")]);
  rmSync(key);
  expect(await configuration.reload()).toMatchObject({ ok: false });
  expect(configuration.current().upstreams[0]?.apiKey).toBe("second");
});

const secrets = ["engine", "header", "client", "query", "database", "redis", "mail"].map((one) => `${one}-secret`);
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
  const shown = shownConfiguration(configured(yaml, env));
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

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
const [first, second] = [random(32), random(32)];

test("a secret opens with its key and in its place, and in no other", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), fc.string(), fc.string(), (secret, about, other) => {
      const { seal, open } = sealing([first], random);
      const sealed = seal(secret, about);
      expect(open(sealed, about)).toBe(secret.toWellFormed());
      if (other !== about) expect(open(sealed, other)).toBeNull();
      expect(sealing([second], random).open(sealed, about)).toBeNull();
    }),
    { numRuns: 50 },
  );
});

test("no changed, cut or empty secret opens", () => {
  const { seal, open } = sealing([first], random);
  const sealed = seal("refresh", "a");
  for (let place = 0; place < sealed.length; place++) {
    const changed = sealed.slice();
    changed[place]! ^= 1;
    expect(open(changed, "a")).toBeNull();
    expect(open(sealed.subarray(0, place), "a")).toBeNull();
  }
});

test("the same secret is sealed differently each time", () => {
  const { seal } = sealing([first], random);
  expect(seal("refresh", "a")).not.toEqual(seal("refresh", "a"));
});

test("while a key changes, both open, the new one seals, and what the old one sealed is said to be outdated", () => {
  const before = sealing([first], random).seal("refresh", "a");
  const changing = sealing([second, first], random);
  expect(changing.open(before, "a")).toBe("refresh");
  expect(changing.isOutdated(before)).toBe(true);
  const after = changing.seal("refresh", "a");
  expect(changing.isOutdated(after)).toBe(false);
  const changed = sealing([second], random);
  expect(changed.open(after, "a")).toBe("refresh");
  expect(changed.open(before, "a")).toBeNull();
});

test("in the rounds that docs/identity.md says, each node opens what nodes of the same and the next round seal", () => {
  const page = readFileSync(join(import.meta.dir, "../../docs/identity.md"), "utf8");
  const [, ...rounds] = /^Change it in three rounds .*: `([\w,]+)`, then `([\w,]+)`, after 30 days `(\w+)`\./m.exec(
    page,
  )!;
  expect(rounds).toEqual(["old,new", "new,old", "new"]);
  const keys: Record<string, Uint8Array> = { old: first, new: second };
  const nodes = ["old", ...rounds].map((names) =>
    sealing(
      names.split(",").map((name) => keys[name]!),
      random,
    ),
  );
  for (const [at, node] of nodes.entries())
    for (const other of nodes.slice(at, at + 2)) {
      expect(other.open(node.seal("refresh", "a"), "a")).toBe("refresh");
      expect(node.open(other.seal("refresh", "a"), "a")).toBe("refresh");
    }
});

test("keys are 32 bytes in base64, one or two", () => {
  const text = Buffer.from(first).toString("base64");
  expect(secretKeysIn(text)).toEqual([first]);
  expect(secretKeysIn(Buffer.from(first).toString("base64url"))).toEqual([first]);
  for (const wrong of ["", "x", text.slice(4), `${text} ${text} ${text}`, `${text}!`])
    expect(secretKeysIn(wrong)).toBeNull();
});
