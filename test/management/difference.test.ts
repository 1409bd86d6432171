/** What a file of organizations changes: each field that differs, from what to what, and nothing else. */
import { expect, test } from "bun:test";
import { changesTo, type WantedOrganization } from "../../src/management/difference.ts";
import type { Organization } from "../../src/store/directory.ts";

const acme = {
  slug: "acme",
  name: "Acme",
  plan: "pro",
  status: "active",
  formerSlugs: ["acme-old"],
  extraUsage: { enabled: true, capUnits: 500 },
  keyLifetimeMaxDays: 90,
  keyUnusedMaxDays: null,
  keepsContent: true,
} as unknown as Organization;
const changes = (wanted: WantedOrganization, now: Partial<Organization> = {}) =>
  changesTo([wanted], new Map([["acme", { ...acme, ...now }]]), ["pro", "max"]).map(
    ({ field, from, to }) => `${field}: ${from} → ${to}`,
  );

test("each field that differs is a change, policies as well; what is the same or absent is none", () => {
  expect(changes({ slug: "acme" })).toEqual([]);
  expect(changes({ slug: "acme", name: "Acme", plan: "pro", capUnits: 500, keyLifetimeMaxDays: 90 })).toEqual([]);
  expect(
    changes({
      slug: "acme",
      name: "Acme & Co",
      plan: "max",
      capUnits: null,
      keyLifetimeMaxDays: 30,
      keyUnusedMaxDays: 7,
      keepsContent: false,
      status: "suspended",
    }),
  ).toEqual([
    "name: Acme → Acme & Co",
    "plan: pro → max",
    "extra_usage_cap_units: 500 → null",
    "key_lifetime_max_days: 90 → 30",
    "key_unused_max_days: null → 7",
    "keeps_content: true → false",
    "status: active → suspended",
  ]);
});

test("an organization that is not there yet is made, with the policies that differ from those of a new one", () => {
  expect(changes({ slug: "new", plan: "max", keepsContent: true, keyUnusedMaxDays: 7 })).toEqual([
    "organization: null → new",
    "key_unused_max_days: null → 7",
  ]);
});

test("a closed organization stays as it is, a plan must exist, and a former name is said to be one", () => {
  expect(changes({ slug: "acme", status: "closed", name: "Other" }, { status: "closed" })).toEqual([]);
  expect(changes({ slug: "acme", name: "Acme" }, { status: "closed" })).toEqual([]);
  expect(() => changes({ slug: "acme", name: "Other" }, { status: "closed" })).toThrow(
    "is closed and cannot be changed",
  );
  expect(() => changes({ slug: "acme", plan: "gold" })).toThrow("There are: pro, max.");
  expect(() => changes({ slug: "acme-old" })).toThrow("is called 'acme' now");
  expect(() => changes({ slug: "acme", status: "closed", keys: [{ name: "k" }] })).toThrow("Take them out of the file");
});
