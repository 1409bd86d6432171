// From the claims of a person's token to memberships: which rules match, and what happens when groups are missing or
// too many.

import { describe, expect, test } from "bun:test";
import type { Claims, Rule } from "../../../src/core/auth/identity.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import {
  callingRule,
  groupsIn,
  kindBy,
  matching,
  membershipsBy,
  subjectIn,
  withGroups,
} from "../../../src/features/identity/rules.ts";

const issuer = { issuer: "https://login.example" };
const rule = (fields: Partial<Rule>): Rule => ({
  issuer: null,
  claim: "groups",
  wanted: { has: "research" },
  role: "member",
  kind: "person",
  organization: "acme",
  team: null,
  scopes,
  models: null,
  ...fields,
});
const matches = (fields: Partial<Rule>, claims: Claims) => matching([rule(fields)], issuer, claims).length === 1;

describe("a claim", () => {
  test.each<[object, boolean]>([
    [{ groups: ["research"] }, true],
    [{ groups: ["other", "research"] }, true],
    [{ groups: ["Research"] }, false],
    [{ groups: "research" }, false],
    [{ groups: "a research b" }, false],
    [{ groups: { research: true } }, false],
    [{ groups: [["research"]] }, false],
    [{ groups: null }, false],
    [{}, false],
  ])("that is a list: %j", (claims, expected) => {
    expect(matches({}, claims as Claims)).toBe(expected);
  });

  test.each<[object, boolean]>([
    [{ tier: "gold" }, true],
    [{ tier: "Gold" }, false],
    [{ tier: ["gold"] }, false],
    [{ tier: true }, false],
  ])("that is text: %j", (claims, expected) => {
    expect(matches({ claim: "tier", wanted: { is: "gold" } }, claims as Claims)).toBe(expected);
  });

  test("an unverified e-mail address is nobody's", () => {
    const mine = { claim: "email", wanted: { is: "Ann@example.com" } };
    expect(matches(mine, { email: "ann@EXAMPLE.com", email_verified: true })).toBe(true);
    expect(matches(mine, { email: "ann@example.com", email_verified: "true" })).toBe(true);
    for (const email_verified of [false, "false", 1, "yes", null, undefined, ["true"]])
      expect(matches(mine, { email: "ann@example.com", email_verified })).toBe(false);
    expect(matches(mine, { email: "ann@example.com" })).toBe(false);
  });

  test("is found by its whole name before its path, and never on what all objects have", () => {
    const path = { claim: "realm_access.roles", wanted: { has: "a" } };
    expect(matches(path, { realm_access: { roles: ["a"] } })).toBe(true);
    expect(matches(path, { "realm_access.roles": ["b"], realm_access: { roles: ["a"] } })).toBe(false);
    expect(
      matches({ claim: "https://example.com/groups", wanted: { has: "a" } }, { "https://example.com/groups": ["a"] }),
    ).toBe(true);
    expect(matches({ claim: "constructor.name", wanted: { is: "Object" } }, {})).toBe(false);
    expect(matches({ claim: "__proto__.x", wanted: { is: "y" } }, JSON.parse('{"a":{}}'))).toBe(false);
  });
});

test("a rule counts for its own issuer alone", () => {
  const claims = { groups: ["research"] };
  expect(matches({ issuer: "https://login.example" }, claims)).toBe(true);
  expect(matches({ issuer: "https://login.example/" }, claims)).toBe(false);
  expect(matches({ issuer: "https://other.example" }, claims)).toBe(false);
});

test("all rules that match give memberships, and in one organization the first", () => {
  const rules = [
    rule({ role: "organization-admin" }),
    rule({ role: "member", team: "research" }),
    rule({ organization: "beta" }),
    rule({ organization: null, role: "viewer" }),
    rule({ organization: null, role: "admin" }),
    rule({ organization: "gamma", wanted: { has: "others" } }),
  ];
  const found = membershipsBy(matching(rules, issuer, { groups: ["research"] }));
  expect(found.map(({ organization, role, team }) => [organization, role, team])).toEqual([
    ["acme", "organization-admin", null],
    ["beta", "member", null],
    [null, "viewer", null],
  ]);
});

test("a caller's token calls by the first rule with an organization: none makes it administer", () => {
  const admin = rule({ organization: null, role: "admin" });
  expect(callingRule([admin])).toBeNull();
  expect(callingRule([admin, rule({ organization: "beta" })])?.organization).toBe("beta");
  expect(kindBy([rule({ kind: "service" })])).toBe("service");
  expect(kindBy([])).toBe("person");
});

describe("groups", () => {
  const now = new Date("2026-11-25T12:00:00Z");
  const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000);
  const age = { claim: "groups", maxAge_ms: 24 * 3_600_000 };
  const earlier = (hours: number) => ({ groups: ["research"], groupsAt: hoursAgo(hours) });

  test("that an answer has count, even none at all", () => {
    expect(withGroups({ groups: [] }, age, earlier(1), now)).toEqual({ groups: [] });
  });

  test("that an answer leaves out are kept for a while, and then there are none", () => {
    expect(withGroups({}, age, earlier(24), now)).toEqual({ groups: ["research"] });
    expect(withGroups({}, age, earlier(24.001), now)).toEqual({ groups: [] });
    expect(withGroups({}, age, null, now)).toEqual({ groups: [] });
    expect(withGroups({}, age, { groups: ["research"], groupsAt: null }, now)).toEqual({ groups: [] });
  });

  test("that overflow count as left out: a part of them is none", () => {
    const entra = { _claim_names: { groups: "src1" }, _claim_sources: { src1: { endpoint: "https://graph.example" } } };
    expect(groupsIn(entra, "groups")).toBe("overflowing");
    expect(groupsIn({ ...entra, groups: ["research"] }, "groups")).toBe("overflowing");
    expect(groupsIn({ hasgroups: true }, "groups")).toBe("overflowing");
    expect(groupsIn({ groups: Array.from({ length: 2001 }, (_, index) => `g${index}`) }, "groups")).toBe("overflowing");
    expect(groupsIn({ groups: "research" }, "groups")).toBe("absent");
    expect(groupsIn({ groups: ["a", 1, null, "a", "x".repeat(501)] }, "groups")).toEqual(["a"]);
    expect(withGroups(entra, age, earlier(30), now).groups).toEqual([]);
  });
});

test("several claims name somebody together, and nobody else", () => {
  const both = { subject: ["tid", "oid"] };
  expect(subjectIn({ subject: ["sub"] }, { sub: "ann" })).toBe("ann");
  expect(subjectIn(both, { tid: "a/b", oid: "c" })).not.toBe(subjectIn(both, { tid: "a", oid: "b/c" }));
  expect(subjectIn(both, { tid: "a" })).toBeNull();
  for (const sub of ["", 7, null, ["ann"], undefined, "x".repeat(1001)])
    expect(subjectIn({ subject: ["sub"] }, { sub })).toBeNull();
});
