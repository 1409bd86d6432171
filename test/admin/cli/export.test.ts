/**
 * An exported file of organizations describes the current state: applying it changes nothing, and creates the same on
 * another node.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import type { SubjectLimitsShown } from "../../../src/admin/management/limit-shape.ts";
import { allOf } from "../../../src/admin/management/page.ts";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { weekDays } from "../../../src/admin/store/calendar.ts";
import { holds, times } from "../../harness/depth.ts";
import { inMoney } from "../../harness/limits.ts";
import { typed } from "../../harness/money.ts";
import { listTeams } from "../management/lists.ts";
import { type ApplyNode, applyNodes, asTheFile } from "./apply-node.ts";

setDefaultTimeout(120_000);

const { folder, freshFolder, here, there, applyTo, apply } = applyNodes();
const nothing = { code: 0, out: asTheFile, err: "" };

describe("export", () => {
  test("writes what there is, applying it changes nothing, and elsewhere it makes the same", async () => {
    let round = 0;
    await holds(
      fc.asyncProperty(
        fc.array(organizationArbitrary, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async (all, full) => {
          const prefix = `round-${round++}`;
          const slugs = all.map((_, index) => `${prefix}-${index}`);
          for (const [index, one] of all.entries()) await build(here.manage, slugs[index]!, one);
          const plans = all.map((_, index) => `plan-${slugs[index]}`);
          const exported = async ({ cli }: ApplyNode) => {
            const words = ["export", "--org", slugs.join(","), ...(full ? ["--all-fields"] : [])];
            return (await cli.typed(words)).out;
          };
          const text = await exported(here);
          expect(await applyTo(here, text, "--prune", "--dry-run")).toEqual(nothing);
          for (const name of plans) await copyPlan(name);
          const made = await applyTo(there, text, "--secrets", freshFolder());
          expect([made.code, made.err]).toEqual([0, ""]);
          expect(await exported(there)).toBe(text);
          for (const slug of slugs)
            expect(await settingsOf(there.manage, slug)).toEqual(await settingsOf(here.manage, slug));
        },
      ),
      times(2, 30),
    );
  });

  test("says of a key only what is its own, and of what is not limited that it is none", async () => {
    const { manage } = here;
    await manage.createOrganization({ slug: "heirs", plan: "pro" });
    await manage.updateOrganizationLimits({ organization: "heirs", keys: { session: "0.25" } });
    const limits = { session: "none", week: "0.000000007" } as const;
    await manage.createKey({ organization: "heirs", name: "free", limits });
    const { organizations } = await here.cli.json("export --org heirs --json");
    expect(organizations).toMatchObject({
      heirs: {
        limits: { keys: { session: 0.25 } },
        keys: { free: { limits: { own: { session: "none", week: "0.000000007" } } } },
      },
    });
  });

  test("leaves out keys that a file cannot tell apart, and says so; nothing of it revokes them", async () => {
    await here.manage.createOrganization({ slug: "twins" });
    for (const name of ["a", "a", "b"]) await here.manage.createKey({ organization: "twins", name });
    const { out, err, code } = await here.cli.typed("export --org twins");
    expect([code, err]).toEqual([0, expect.stringContaining("twins has 2 keys 'a'")]);
    expect(out).toContain("b: {}");
    expect((await apply(out, "--prune")).out).toBe(asTheFile);
  });

  test("warns of a limit that another store would refuse: the organization's was lowered after it", async () => {
    await here.manage.createOrganization({ slug: "lowered" });
    await here.manage.createKey({ organization: "lowered", name: "ci", limits: { week: "50" } });
    await here.manage.updateOrganizationLimits({ organization: "lowered", own: { week: "20" } });
    const { out, err, code } = await here.cli.typed("export --org lowered");
    expect(code).toBe(0);
    expect(out).toContain("week: 50");
    expect(err).toMatch(
      /^warning: another store would refuse organizations\.yaml:\d+:\d+: organizations\.lowered\.keys\.ci\.limits\.own: The limit 'week' of 50 for the key is above that of the organization 'lowered', 20\. Choose a lower one\.\n$/,
    );
  });

  test("has the plans made here, and every organization that is not closed, unless some are named", async () => {
    await here.manage.createPlan({ name: "own", week: "77" });
    await here.manage.createOrganization({ slug: "ended" });
    await here.manage.closeOrganization({ organization: "ended" });
    const whole = await here.cli.json("export --json");
    expect(whole.plans).toMatchObject({ own: { week: "77" } });
    expect(Object.keys(whole.organizations as object)).toEqual(expect.arrayContaining(["acme", "globex"]));
    expect(whole.organizations).not.toHaveProperty("ended");
    const { out: text } = await here.cli.typed("export");
    expect(await apply(text, "--dry-run", "--prune")).toEqual(nothing);
    expect((await here.cli.typed("export --org nobody")).err).toContain("There is no organization 'nobody'");
    const output = join(folder, "out.yaml");
    expect((await here.cli.typed(["export", "--org", "acme", "-o", output])).err).toContain("Wrote");
    expect(readFileSync(output, "utf8")).toContain("acme:");
    expect((await here.cli.typed(["export", "--org", "acme", "-o", output])).code).toBe(1);
  });
});

async function copyPlan(name: string): Promise<void> {
  const { week, concurrentRequests } = await here.manage.findPlan({ name });
  await there.manage.createPlan({ name, week, concurrentRequests });
}

/** Names that YAML, the substitution of variables or JavaScript objects could misinterpret. */
const odd = fc.constantFrom(
  ...["true", "123", "~", "null", "<<", "__proto__", "a: b", "# x", "$" + "{HOME}", "$${x}", "- y", "'", '"', "ü 1"],
  ...["*a", "&b", "!t", "0x1f", "a, b", "[", "{}", "on"],
);
const nameArbitrary = fc.oneof(
  odd,
  fc
    .string({ unit: "grapheme-ascii", minLength: 1, maxLength: 12 })
    .map((text) => text.trim())
    .filter(Boolean),
);
const amount = fc.option(fc.integer({ min: 1, max: 1_000_000 }), { nil: null });
/** Random limits that the verbs accept. */
const limitsArbitrary = fc
  .record({
    ...{ session: amount, week: amount, requestsPerMinute: amount, concurrentRequests: amount },
    notLimited: fc.constantFrom(null, "month", "tokensPerMinute"),
  })
  .map(({ notLimited, ...limits }) => ({ ...inMoney(limits), ...(notLimited && { [notLimited]: "none" as const }) }));
/**
 * Limits of organizations. They are above all other limits in the file, because a file is refused in which a limit
 * exceeds the organization's.
 */
const wider = fc.constantFrom(null, 1e12);
const widerArbitrary = fc
  .record({ session: wider, month: wider, requestsPerMinute: wider, concurrentRequests: fc.constantFrom(null, 1e6) })
  .map(inMoney);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const organizationArbitrary = fc.record({
  name: nameArbitrary,
  plan: fc.constantFrom("pro", "own", null),
  anchor: optional(fc.constantFrom("2026-11-01", "2030-02-28T12:00:00Z")),
  capNanos: optional(fc.integer({ min: 1, max: 1e12 })),
  policies: fc.record({ keyLifetimeMaxDays: optional(fc.constantFrom(30, 365)), keepsContent: fc.boolean() }),
  keyLimits: limitsArbitrary,
  memberLimits: limitsArbitrary,
  own: widerArbitrary,
  notices: optional(
    fc.record({
      url: fc.constant("https://hooks.example.com/$x?a=1"),
      shares: fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { maxLength: 4 }),
      keyExpiryDays: fc.integer({ min: 0, max: 90 }),
    }),
  ),
  teams: fc.uniqueArray(
    fc.record({
      name: nameArbitrary,
      limits: limitsArbitrary,
      keys: limitsArbitrary,
      members: limitsArbitrary,
      models: fc.dictionary(fc.constantFrom("acme/writer-1", "acme/*", "other.1/*"), limitsArbitrary),
    }),
    { selector: ({ name }) => name, maxLength: 3 },
  ),
  keys: fc.uniqueArray(
    fc.record({
      name: nameArbitrary,
      scopes: optional(
        fc.constantFrom<("inference:create" | "usage:read")[]>(
          ["inference:create"],
          ["usage:read", "inference:create"],
        ),
      ),
      models: optional(fc.constant<string[]>(["acme/writer-1"])),
      owner: optional(nameArbitrary),
      labels: fc.dictionary(fc.constantFrom("a", "b/c", "team.x", "1"), nameArbitrary),
      allow_from: optional(fc.constant<string[]>(["10.0.0.0/8", "2001:db8::/64"])),
      expires_at: optional(fc.constant(new Date(Date.now() + 20 * 86_400_000).toISOString())),
      team: fc.nat(3),
      limits: fc.option(limitsArbitrary),
      isRevoked: fc.boolean(),
    }),
    { selector: ({ name }) => name, maxLength: 4 },
  ),
  isSuspended: fc.boolean(),
  calendar: optional(
    fc.record({
      zone: fc.constantFrom("Europe/Berlin", "Asia/Kathmandu"),
      weekStarts: fc.constantFrom(...weekDays),
      monthStarts: fc.integer({ min: 1, max: 31 }),
    }),
  ),
});
type Built = typeof organizationArbitrary extends fc.Arbitrary<infer One> ? One : never;

/** Creates the organization by calling the verbs one by one. */
async function build(manage: Management, organization: string, one: Built): Promise<void> {
  await manage.createPlan({ name: `plan-${organization}`, week: "2" });
  await manage.createOrganization({ slug: organization, name: one.name });
  await manage.setPlan({ organization, plan: one.plan === "own" ? `plan-${organization}` : one.plan });
  if (one.anchor && !one.calendar) await manage.setAnchor({ organization, anchor: one.anchor });
  if (one.calendar) await manage.updateCalendar({ organization, ...one.calendar });
  if (one.capNanos) await manage.setExtraUsage({ organization, cap: typed(one.capNanos) });
  await manage.updatePolicies({ organization, ...one.policies });
  await manage.updateOrganizationLimits({ organization, keys: one.keyLimits, members: one.memberLimits });
  if (one.notices) await manage.setNotices({ organization, name: "webhook", ...one.notices });
  for (const { name, limits, ...given } of one.teams) {
    const { id } = await manage.createTeam({ organization, name, limits });
    await manage.updateTeamLimits({ team: id, ...given });
  }
  for (const { team, isRevoked, ...key } of one.keys) {
    const made = await manage.createKey({ organization, ...key, team: one.teams[team]?.name ?? null });
    if (isRevoked) await manage.revokeKey({ id: made.id });
  }
  await manage.updateOrganizationLimits({ organization, own: { ...one.own, session: null, week: null } });
  if (one.isSuspended) await manage.suspendOrganization({ organization });
}

/** Reads all settings of an organization by the verbs, without IDs, times, versions and secrets. */
async function settingsOf(manage: Management, organization: string) {
  const { name, status, plan, extraUsage, anchorAt, nextAnchor, calendar, ...one } = await manage.findOrganization({
    organization,
  });
  const { keyLifetimeMaxDays, keyUnusedMaxDays, keepsContent } = one;
  const valuesOf = ({ own, keys, members, models }: SubjectLimitsShown) => ({ own, keys, members, models });
  const limits = valuesOf(await manage.findOrganizationLimits({ organization }));
  const limitsOf = async (of: "teams" | "keys") => {
    const all = await allOf((page) => manage.findOrganizationLimits({ organization, of, ...page }));
    return new Map(all.map((found) => [found.subjectId, valuesOf(found)]));
  };
  const [teamLimits, keyLimits] = [await limitsOf("teams"), await limitsOf("keys")];
  const teams = await listTeams(manage, { organization });
  const keys = await allOf((page) => manage.pageKeys({ organization, ...page }));
  const notices = await manage.findNotices({ organization, name: "webhook" }).catch(() => null);
  return {
    ...{ name, status, plan, extraUsage, keyLifetimeMaxDays, keyUnusedMaxDays, keepsContent, limits },
    calendar,
    anchor: calendar ? null : (nextAnchor ?? { anchorAt }).anchorAt,
    notices: notices && [notices.url, notices.shares, notices.keyExpiryDays],
    teams: byName(teams.map(({ id, name }) => ({ name, limits: teamLimits.get(id) }))),
    keys: byName(
      keys
        .filter(({ state }) => state !== "revoked")
        .map(({ id, name, scopes, models, expiresAt, owner, labels, allowFrom, team }) => ({
          ...{ name, scopes, models, expiresAt, owner, labels, allowFrom, team: team?.name, limits: keyLimits.get(id) },
        })),
    ),
  };
}

const byName = <Named extends { name: string }>(all: Named[]) =>
  all.sort((one, other) => (one.name < other.name ? -1 : 1));
