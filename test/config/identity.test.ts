// The section `identity` of sluice.yaml: its defaults, and the errors, each of which says what to do.

import { describe, expect, test } from "bun:test";
import { configurationHash } from "../../src/config/hash.ts";
import { configured, expectProblem, problemsOf } from "./reading.ts";

const env = { SLUICE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
const issuer = { issuer: "https://login.example", audiences: ["sluice-api"] };
const member = { claim: "groups", has: "research", organization: "acme", role: "member" };

/** Writes a sluice.yaml as JSON, which is valid YAML. */
const written = (identity: object) => JSON.stringify({ identity });
const problems = (identity: object) => problemsOf(written(identity), env).map((one) => one.replace(/^:?\d+:\d+: /, ""));
const withIssuer = (fields: object) => problems({ issuers: [{ ...issuer, ...fields }] });
const withRule = (fields: object) => problems({ issuers: [issuer], rules: [{ ...member, ...fields }] });

describe("identity", () => {
  test("is nothing unless the file has it", () => {
    expect(configured(null).identity).toBeNull();
  });

  test("has defaults that close rather than open", () => {
    const { identity } = configured(written({ issuers: [{ issuer: "https://login.example" }], rules: [member] }), env);
    expect(identity).toEqual({
      serviceUrl: null,
      consoleUrl: null,
      issuers: [
        {
          issuer: "https://login.example",
          name: "login.example",
          clientId: null,
          clientSecret: null,
          scopes: ["openid", "profile", "email", "offline_access"],
          parameters: {},
          audiences: [],
          algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
          subject: ["sub"],
          groupsClaim: "groups",
        },
      ],
      rules: [
        {
          issuer: null,
          claim: "groups",
          wanted: { has: "research" },
          role: "member",
          kind: "person",
          organization: "acme",
          team: null,
          scopes: ["models:read", "inference:create", "usage:read"],
          models: null,
        },
      ],
      groupsMaxAge_ms: 24 * 3_600_000,
      keysOfLeavers: "revoke",
      sessionIdle_ms: 8 * 3_600_000,
      sessionMax_ms: 24 * 3_600_000,
      confirmedMax_ms: 30 * 24 * 3_600_000,
      claudeCodeSettings: false,
    });
  });

  test("needs a secret key, and says how to make one", () => {
    const text = written({ issuers: [issuer] });
    expect(problemsOf(text)).toEqual([
      "identity.issuers needs SLUICE_SECRET_KEY, which is not set; make one with openssl rand -base64 32, the same for all nodes",
    ]);
    expect(problemsOf(text, { ...env, SLUICE_CONSOLE_PORT: "8082", SLUICE_CONSOLE_HOST: "0.0.0.0" })).toEqual([
      "SLUICE_CONSOLE_PORT needs identity.console_url in sluice.yaml, the address at which browsers reach the console, because SLUICE_CONSOLE_HOST is not this machine alone",
    ]);
    const operatorsAlone = configured(written({ console_url: "https://console.sluice.example" }), {
      ...{ SLUICE_CONSOLE_PORT: "8082", SLUICE_CONSOLE_HOST: "0.0.0.0" },
    });
    expect(operatorsAlone.identity).toMatchObject({ issuers: [], consoleUrl: "https://console.sluice.example" });
    expectProblem("there is none", written({ rules: [member] }));
    const short = problemsOf(text, { SLUICE_SECRET_KEY: "c2hvcnQ=" });
    expect(short).toHaveLength(1);
    expect(short[0]).toMatch(/^SLUICE_SECRET_KEY must be 32 bytes in base64/);
    expect(short[0]).not.toContain("c2hvcnQ");
    const two = `${env.SLUICE_SECRET_KEY}, ${Buffer.alloc(32, 8).toString("base64")}`;
    expect(configured(text, { SLUICE_SECRET_KEY: two }).server.secretKeys).toHaveLength(2);
    expect(problemsOf(text, { SLUICE_SECRET_KEY: `${two},${two}` })).toHaveLength(1);
  });

  test("refuses an audience that is a client id of any issuer, since ID tokens would be callers", () => {
    const other = { issuer: "https://other.example", client_id: "sluice-api" };
    const found = problems({ service_url: "https://sluice.example", issuers: [issuer, other] });
    expect(found).toEqual([expect.stringMatching(/^identity.issuers\[0\].audiences\[0\]: is a client id: ID tokens/)]);
  });

  test.each([
    ["http://login.example", "must begin with https://, because it is not on this machine"],
    ["login.example", "must be a URL without query and fragment"],
    ["https://login.example?tenant=a", "must be a URL without query and fragment"],
    ["https://user:pw@login.example", "must not contain a user name or password"],
    ["http://127.0.0.1.evil.example", "must begin with https://"],
    ["http://localhost.evil.example", "must begin with https://"],
  ])("refuses the issuer %s", (text, message) => {
    expect(withIssuer({ issuer: text })).toEqual([expect.stringContaining(`identity.issuers[0].issuer: ${message}`)]);
  });

  test.each(["http://127.0.0.1:9000", "http://localhost:9000/realms/a", "http://[::1]:9000", "https://login.example/"])(
    "takes the issuer %s to the letter",
    (text) => {
      const { identity } = configured(written({ issuers: [{ ...issuer, issuer: text }] }), env);
      expect(identity?.issuers[0]?.issuer).toBe(text);
    },
  );

  test.each<[identity: object, says: string]>([
    [{ issuers: [{ ...issuer, client_secret: "s3cret" }] }, "issuers[0].client_secret: is of no use without client_id"],
    [{ issuers: [{ ...issuer, client_id: "sluice" }] }, "service_url: is missing"],
    [{ issuers: [{ ...issuer, algorithms: ["HS256"] }] }, "algorithms[0]: must be"],
    [{ issuers: [{ ...issuer, algorithms: ["none"] }] }, "algorithms[0]: must be"],
    [{ issuers: [issuer, issuer] }, "issuers[1].issuer: is already the issuer of issuers[0]"],
    [{ issuers: [issuer], service_url: "http://sluice.example" }, "service_url: must begin with https"],
    [{ issuers: [issuer], service_url: "https://sluice.example/v1" }, "service_url: must have no path"],
    // With several issuers, each rule must name its issuer.
    [{ issuers: [issuer, { issuer: "https://other.example" }], rules: [member] }, "rules[0].issuer: is missing"],
  ])("refuses what has no effect, and explains it: %j", (identity, says) => {
    expect(problems(identity)).toEqual([expect.stringContaining(says)]);
  });

  test.each([
    [{ is: "research" }, "needs one of has"],
    [{ has: undefined }, "needs one of has"],
    [{ claim: "email" }, "is for lists, and email is text; use is"],
    [{ role: "admin" }, "is of no use: the role admin is for the whole service"],
    [{ organization: undefined }, "is missing; the role member is a role in an organization"],
    [{ role: "admin", organization: undefined, kind: "service" }, "is for callers, and callers never administer"],
    [{ role: "viewer", organization: undefined, models: ["a/b"] }, "is of no use with the role viewer"],
    [{ issuer: "https://evil.example" }, "names no issuer of this file"],
  ])("refuses the rule %j", (fields, message) => {
    expect(withRule(fields)).toEqual([expect.stringContaining(message)]);
  });

  test("the public hash says nothing of a client's secret, and that there is one", () => {
    const service_url = "https://sluice.example";
    const hashOf = (fields: object) =>
      configurationHash(
        configured(written({ service_url, issuers: [{ ...issuer, client_id: "sluice", ...fields }] }), env),
      );
    expect(hashOf({ client_secret: "one" })).toBe(hashOf({ client_secret: "two" }));
    expect(hashOf({ client_secret: "one" })).not.toBe(hashOf({}));
  });
});
