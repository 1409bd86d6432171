// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what is tested here
// Secrets in files: what they may be, what is said of those that are none, and that no message shows what is in them.
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Configuration } from "../../src/config/configuration.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigurationError } from "../../src/config/problem.ts";
import { reloadable } from "../../src/config/reload.ts";
import { readFileBounded } from "../../src/config/source.ts";
import type { Variables } from "./reading.ts";

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
  return loadConfiguration({ env: { ...env, SLUICE_CONFIG }, readFile, simulatorUrl: null });
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
  // Root can read every file, so this case is left out for root.
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
      simulatorUrl: null,
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
