import { describe, expect, test } from "bun:test";
import { filled } from "../../src/config/settings/row.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { configured, problemsOf } from "./reading.ts";

const unescaped = (url: string): [Record<string, string>, string] => [
  { REDIS_URL: url },
  "REDIS_URL is not a URL: a /, #, ?, @ or % in its password must be escaped (%2F, %23, %3F, %40, %25); its text is not shown",
];

describe("the environment", () => {
  test("when it says nothing, the service listens on 127.0.0.1:8080 and keeps its data in ./data", () => {
    const { server, storage, notices } = configured(null);
    const standing = {
      operator: null,
      migrates: true,
      trustedProxies: [],
      clientAddressHeader: "x-forwarded-for",
      ...filled(sections.server.properties),
    };
    expect(server).toEqual({ host: "127.0.0.1", port: 8080, ...standing });
    expect(storage).toEqual({ databaseUrl: null, redisUrl: null, dataDir: "./data" });
    expect(notices).toEqual([]);
  });

  test("an empty variable is an unset one", () => {
    const empty = { PORT: "", HOST: " ", DATABASE_URL: "", SLUICE_CONFIG: "", SLUICE_UPSTREAM_URL: "" };
    expect(configured(null, empty)).toEqual(configured(null));
  });

  test("a variable may say what holds without it", () => {
    const same = { PORT: "8080", HOST: "127.0.0.1", SLUICE_DATA_DIR: "./data", SLUICE_MIGRATE: "true" };
    expect(configured(null, same)).toEqual(configured(null));
  });

  test("is read", () => {
    const { server, storage } = configured(null, {
      PORT: "0",
      HOST: "[::]",
      DATABASE_URL: "postgres://sluice@db.example:5432/sluice",
      REDIS_URL: "rediss://:secret@cache.example:6380/1",
      SLUICE_DATA_DIR: "/var/lib/sluice",
      SLUICE_OPERATOR_PORT: "9090",
      SLUICE_OPERATOR_HOST: "10.0.0.1",
      SLUICE_OPERATOR_NAMES: "Sluice.internal, sluice-1",
      SLUICE_MIGRATE: "false",
      SLUICE_TRUSTED_PROXIES: "10.0.0.0/8, 192.0.2.1 ::1",
      SLUICE_CLIENT_ADDRESS_HEADER: "Forwarded",
      SLUICE_WORKERS: "auto",
      SLUICE_WARM_UP_MS: "0",
    });
    expect(server).toEqual({
      host: "::",
      port: 0,
      operator: { host: "10.0.0.1", port: 9090, names: ["sluice.internal", "sluice-1"] },
      migrates: false,
      trustedProxies: ["10.0.0.0/8", "192.0.2.1", "::1"],
      clientAddressHeader: "forwarded",
      ...filled(sections.server.properties),
      workers: "auto",
      warm_up_ms: 0,
    });
    expect(storage).toEqual({
      databaseUrl: "postgres://sluice@db.example:5432/sluice",
      redisUrl: "rediss://:secret@cache.example:6380/1",
      dataDir: "/var/lib/sluice",
    });
  });

  const aPort = "must be a whole number from 0 to 65535";
  const noHost = "HOST must be an address or host name to listen on, such as 127.0.0.1, 0.0.0.0 or ::";
  test.each([
    [{ PORT: "abc" }, `PORT ${aPort}, not "abc"`],
    [{ PORT: "65536" }, `PORT ${aPort}, not "65536"`],
    [{ PORT: "-1" }, `PORT ${aPort}, not "-1"`],
    [{ PORT: "80.5" }, `PORT ${aPort}, not "80.5"`],
    [
      { SLUICE_OPERATOR_PORT: "tcp://10.0.0.1:9090" },
      `SLUICE_OPERATOR_PORT ${aPort}, not "tcp://10.0.0.1:9090"; Kubernetes set it: set enableServiceLinks: false for the pod`,
    ],
    [{ SLUICE_MIGRATE: "no" }, 'SLUICE_MIGRATE must be true or false, not "no"'],
    [{ SLUICE_CONSOLE_PORT: "8080" }, "SLUICE_CONSOLE_PORT must differ from PORT (8080)"],
    [
      { SLUICE_CONSOLE_PORT: "9090", SLUICE_OPERATOR_PORT: "9090" },
      "SLUICE_CONSOLE_PORT must differ from SLUICE_OPERATOR_PORT (9090)",
    ],
    [{ SLUICE_CONSOLE_HOST: "::1" }, "SLUICE_CONSOLE_HOST needs SLUICE_CONSOLE_PORT, which is not set"],
    [{ SLUICE_OPERATOR_PORT: "8080" }, "SLUICE_OPERATOR_PORT must differ from PORT (8080)"],
    [{ SLUICE_OPERATOR_HOST: "::1" }, "SLUICE_OPERATOR_HOST needs SLUICE_OPERATOR_PORT, which is not set"],
    [{ SLUICE_OPERATOR_NAMES: "a.test" }, "SLUICE_OPERATOR_NAMES needs SLUICE_OPERATOR_PORT, which is not set"],
    [
      { SLUICE_OPERATOR_PORT: "9090", SLUICE_OPERATOR_NAMES: "a.test https://b.test" },
      'SLUICE_OPERATOR_NAMES must list host names such as sluice.internal, not "https://b.test"',
    ],
    [
      { SLUICE_CLIENT_ADDRESS_HEADER: "x-real-ip" },
      "SLUICE_CLIENT_ADDRESS_HEADER needs SLUICE_TRUSTED_PROXIES, which is not set",
    ],
    [
      { SLUICE_CLIENT_ADDRESS_HEADER: "x-real-ip:", SLUICE_TRUSTED_PROXIES: "::1" },
      'SLUICE_CLIENT_ADDRESS_HEADER must name a header such as x-forwarded-for, not "x-real-ip:"',
    ],
    [{ HOST: "http://localhost" }, `${noHost}, not "http://localhost"`],
    [{ HOST: "127.0.0.1:8080" }, `${noHost}, not "127.0.0.1:8080"`],
    [
      { DATABASE_URL: "mysql://root:hunter2@db/x" },
      "DATABASE_URL must be a URL such as postgres://user@host:5432/name; its text is not shown because it may contain a password",
    ],
    [
      { REDIS_URL: "cache:6379" },
      "REDIS_URL must be a URL such as redis://host:6379; its text is not shown because it may contain a password",
    ],
    ...["redis://:a/b@cache:6379", "redis://:a#b@cache", "rediss://:a?b@cache", "redis://u:a%zz@cache"].map(unescaped),
    ...["redis://default:12/34@cache", "redis://default:12?34@cache/0"].map(unescaped),
    [{ SLUICE_UPSTREAM_MODEL: "m" }, "SLUICE_UPSTREAM_MODEL needs SLUICE_UPSTREAM_URL, which is not set"],
    [
      { SLUICE_UPSTREAM_URL: "localhost:8000" },
      "SLUICE_UPSTREAM_URL must be a URL that begins with http:// or https://, such as http://127.0.0.1:8000/v1",
    ],
    [
      { SLUICE_UPSTREAM_URL: "http://x/v1", SLUICE_UPSTREAM_KEY: "hunter two" },
      "SLUICE_UPSTREAM_KEY contains a space, a line break, or a character outside ASCII, which a header cannot contain",
    ],
    [{ SLUICE_CONFIG: "/etc/sluice.yaml" }, "/etc/sluice.yaml: the file that SLUICE_CONFIG names does not exist"],
  ])("%j is refused in plain words", (env, problem) => {
    expect(problemsOf(null, env)).toEqual([problem]);
  });

  test("everything wrong in environment and file is said at once", () => {
    const problems = problemsOf("plan: {}", { PORT: "x", REDIS_URL: "y" });
    expect(problems).toHaveLength(3);
    expect(problems[2]).toBe("1:1: plan: is not a known field; did you mean 'plans'?");
  });

  test("a variable that looks misspelled is named, and other variables are ignored", () => {
    const { notices } = configured(null, {
      SLUICE_UPSTREAM_URI: "http://127.0.0.1:9000/v1",
      SLUICE_PORT_8080_TCP_ADDR: "10.0.0.1",
      SLUICE_SERVICE_HOST: "10.0.0.1",
      // The key of the engine that `sluice init` names `gpu`.
      SLUICE_UPSTREAM_KEY_GPU: "one",
    });
    expect(notices).toEqual(["SLUICE_UPSTREAM_URI is not read; did you mean SLUICE_UPSTREAM_URL?"]);
  });
});

test("a password of Redis is taken as it was escaped", () => {
  for (const REDIS_URL of ["redis://:a%2Fb%40@cache:6379/2", "rediss://u:p@[::1]:6379?family=6", "redis://:a@b@cache"])
    expect(configured(null, { REDIS_URL }).storage.redisUrl).toBe(REDIS_URL);
});

describe("the URL of an engine", () => {
  test.each([
    ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"],
    ["http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"],
    ["http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"],
    ["HTTPS://Engine.Example:443///", "https://engine.example/v1"],
    ["https://engine.example/openai/v1beta//", "https://engine.example/openai/v1beta"],
    [" http://[::1]:9/v1 ", "http://[::1]:9/v1"],
  ])("%s becomes %s", (written, url) => {
    expect(configured(null, { SLUICE_UPSTREAM_URL: written }).upstreams.map((one) => one.url)).toEqual([url]);
  });

  test.each([
    ["ftp://engine.example", "begins with http://"],
    ["http://", "is not a valid URL"],
    ["http://user:hunter2@engine.example/v1", "user name or password"],
    ["https://engine.example/v1?key=hunter2", "must not contain a query"],
    ["https://engine.example/v1#hunter2", "must not contain a fragment"],
    ["https://engine.example/v1/chat/completions", "must end with /v1"],
    ["http://engine.example:0/v1", "port 0"],
  ])("%s is refused, and not repeated", (written, words) => {
    const [problem] = problemsOf(null, { SLUICE_UPSTREAM_URL: written });
    expect(problem).toMatch(new RegExp(words));
    expect(problem).not.toContain("hunter2");
  });
});
