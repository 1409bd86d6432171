/**
 * People in a file of organizations (`sluice apply`): the settings of the people whom the file names become those of
 * the file, and nobody else's change. Applying an exported file to the same node changes nothing, and to another node
 * creates the same settings.
 */
import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { allOf } from "../../../src/admin/management/page.ts";
import { type Scope, scopes } from "../../../src/core/store/directory.ts";
import { holds, times } from "../../harness/depth.ts";
import { inMoney, inNanos } from "../../harness/limits.ts";
import { cameIn, issuer } from "../../harness/members.ts";
import { type ApplyNode, applyNodes, asTheFile } from "./apply-node.ts";

setDefaultTimeout(120_000);

const { here, there, applyTo, apply } = applyNodes();
/** The text of a file with these entries of people, and without organizations. */
const peopleOf = (entries: string) => `organizations: {}\npeople: { ${entries} }`;

interface Known {
  subject: string;
  email?: string | null;
  isEmailVerified?: boolean;
  issuer?: string;
  /** The slug of an organization in which a rule makes the person a member at sign-in. */
  organization?: string;
}
function comes({ owned }: ApplyNode, { organization, ...known }: Known) {
  const membership = { team: null, role: "member" as const, scopes, models: null };
  const memberships = organization === undefined ? [] : [{ ...membership, organization }];
  return cameIn(owned.db, { email: null, ...known, memberships });
}
const shown = (person: string) => here.port.manage.findPerson({ person });

/** Deletes all people, so that `--prune` in one test does not find people of another test. */
async function forgetAll(): Promise<void> {
  for (const { port } of [here, there])
    for (const { id, state } of await allOf((page) => port.manage.pagePeople(page)))
      if (state !== "forgotten") await port.manage.forgetPerson({ person: id });
}
beforeEach(forgetAll);

/** Reads the limits set for the person (not inherited ones), in nanos. */
async function ownOf(person: string, { port } = here) {
  const of = async (organization: string) =>
    inNanos((await port.manage.findPersonLimits({ organization, person })).own);
  return { acme: await of("acme"), globex: await of("globex") };
}

describe("apply", () => {
  test("gives and takes what stands in the file, shows it before, and then has nothing to do", async () => {
    const ann = await comes(here, { subject: "ann", email: "Ann@Example.com", organization: "globex" });
    const text = `
organizations: { acme: { teams: { research: {} } } }
people:
  ann@example.com:
    suspended: true
    role: viewer
    memberships: { acme: { role: member, team: research, scopes: [usage:read, models:read], models: [acme/writer-1] } }
    limits: { acme: { own: { week: 50 } }, globex: { own: { requests_per_minute: 7 } } }`;
    const before = await here.port.manage.auditHead();
    const dry = await apply(text, "--dry-run", "--exit-code");
    expect(dry.code).toBe(3);
    expect(dry.out).toEndWith(
      [
        "~ person ann@example.com",
        "    suspended: false → true",
        "    role: none → viewer",
        '    memberships.acme: none → {"role":"member","team":"research","scopes":["models:read","usage:read"],"models":["acme/writer-1"]}',
        "    limits.acme.own.week: none → 50",
        "    limits.globex.own.requests_per_minute: none → 7",
        "1 to add, 1 to change. Nothing was changed: this was a dry run.",
        "",
      ].join("\n"),
    );
    expect(await here.port.manage.auditHead()).toEqual(before);
    expect((await apply(text)).out).toEndWith("Applied: 1 added, 1 changed.\n");
    expect(await shown(ann)).toMatchObject({
      state: "suspended",
      memberships: [
        {
          organization: "acme",
          role: "member",
          team: { name: "research" },
          scopes: ["models:read", "usage:read"],
          source: "hand",
        },
        { organization: "globex", role: "member", source: "rule" },
        { organization: null, role: "viewer", source: "hand" },
      ],
    });
    expect(await ownOf(ann)).toEqual({ acme: { week: 50_000_000_000 }, globex: { requestsPerMinute: 7 } });
    expect(await apply(text)).toEqual({ code: 0, out: asTheFile, err: "" });
    const next = peopleOf(
      `"${issuer} ann": { suspended: false, role: null, memberships: { acme: null }, limits: { acme: { own: { week: null, month: 9 } }, globex: { own: { requests_per_minute: null } } } }`,
    );
    expect((await apply(next)).out).toContain(
      "    limits.acme.own.week: 50 → none\n    limits.acme.own.month: none → 9\n",
    );
    expect(await apply(next)).toMatchObject({ code: 0, out: asTheFile });
    const after = await shown(ann);
    expect(after).toMatchObject({ state: "active", memberships: [{ organization: "globex", source: "rule" }] });
    expect(await ownOf(ann)).toEqual({ acme: { month: 9_000_000_000 }, globex: {} });
  });

  test("means people by a verified address or by issuer and subject, and nobody else", async () => {
    await comes(here, { subject: "unverified", email: "eve@example.com", isEmailVerified: false });
    const eve = await apply(peopleOf("eve@example.com: { role: admin }"));
    expect(eve).toEqual({
      ...{ code: 0, out: "Everything else is as the file says.\n" },
      err: "warning: eve@example.com has not come in yet; people appear when they first sign in: left out\n",
    });
    const two = [await comes(here, { subject: "x", email: "bob@example.com" })];
    two.push(await comes(here, { subject: "x", email: "bob@example.com", issuer: "https://other.example" }));
    expect((await apply(peopleOf("bob@example.com: { role: viewer }"))).err).toContain(
      "people.bob@example.com: is the address of 2 people; name each by issuer and subject",
    );
    await apply(peopleOf('"https://other.example x": { role: viewer }'));
    expect((await shown(two[0]!)).memberships).toEqual([]);
    expect((await shown(two[1]!)).memberships).toMatchObject([{ role: "viewer" }]);
    await comes(here, { subject: "cat", email: "cat@example.com" });
    expect((await apply(peopleOf(`cat@example.com: {}, "${issuer} cat": {}`))).err).toContain(
      "is the same person as 'cat@example.com'",
    );
  });

  test("with --prune, takes what was given by hand and is not named, of people too, and never a suspension", async () => {
    const { manage } = here.port;
    const [named, unnamed] = [
      await comes(here, { subject: "named" }),
      await comes(here, { subject: "unnamed", organization: "acme" }),
    ];
    for (const person of [named, unnamed]) {
      for (const organization of ["acme", "globex"]) {
        await manage.giveMembership({ person, organization, role: "member" });
        await manage.updatePersonLimits({ person, organization, own: { week: "5" } });
      }
      await manage.giveMembership({ person, role: "viewer" });
    }
    await manage.suspendPerson({ person: unnamed });
    const text = peopleOf(`"${issuer} named": { memberships: { acme: { role: member } } }`);
    expect((await apply(text)).out).toBe(asTheFile);
    expect((await apply("organizations: {}", "--prune")).out).toBe(asTheFile);
    const { out } = await apply(text, "--prune");
    expect(out).toContain(`~ person ${issuer} named\n    memberships.globex: {"role":"member"} → none\n`);
    expect(out).toEndWith("Applied: 2 changed.\n");
    const [kept, emptied] = [await shown(named), await shown(unnamed)];
    expect(kept.memberships).toMatchObject([{ organization: "acme" }, { role: "viewer" }]);
    const five = { week: 5_000_000_000 };
    expect(await ownOf(named)).toEqual({ acme: five, globex: five });
    expect(emptied).toMatchObject({ state: "suspended", memberships: [{ source: "rule" }] });
    expect(await ownOf(unnamed)).toEqual({ acme: {}, globex: {} });
    expect((await apply(text, "--prune")).out).toBe(asTheFile);
  });

  test("changes nothing where anything is wrong, and says where", async () => {
    await comes(here, { subject: "dan", email: "dan@example.com" });
    await apply("organizations: { acme: {}, ended: {} }\nplans: { tiny: { week: 0.000000005 } }");
    await apply("organizations: { ended: { status: closed }, small: { plan: tiny } }");
    const before = await here.port.manage.auditHead();
    for (const [entry, says] of [
      ["role: owner", "people.dan@example.com.role"],
      ["role: member", "people.dan@example.com.role"],
      ["suspended: maybe", "people.dan@example.com.suspended"],
      ["memberships: { acme: { role: admin } }", "memberships.acme"],
      ["memberships: { acme: {} }", "memberships.acme.role: is missing"],
      ["memberships: { acme: { role: member, teem: x } }", "did you mean 'team'?"],
      ["memberships: { acme: { role: member, team: nobody } }", "memberships.acme: there is no team 'nobody' of acme"],
      ["memberships: { gone: { role: member } }", "memberships.gone: there is no organization 'gone'"],
      ["memberships: { constructor: { role: member } }", "there is no organization 'constructor'"],
      ["memberships: { ended: { role: member } }", "there is no organization 'ended'"],
      [
        "limits: { small: { own: { week: 6 } } }",
        "people.dan@example.com.limits.small.own: The limit 'week' of 6 for the person is above",
      ],
      ["limits: { acme: { own: { wek: 6 } } }", "did you mean 'week'?"],
      ["limits: { gone: { own: { week: 6 } } }", "there is no organization 'gone'"],
    ] as const) {
      const { code, err } = await apply(`organizations: { fine: {} }\npeople: { dan@example.com: { ${entry} } }`);
      expect([entry, code]).toEqual([entry, 1]);
      expect([entry, err]).toEqual([entry, expect.stringContaining(says)]);
    }
    for (const name of ["dan", "dan example", "@example.com", "ftp://x y"])
      expect((await apply(peopleOf(`"${name}": {}`))).err).toContain("must be a verified e-mail address, or an issuer");
    expect(await here.port.manage.auditHead()).toEqual(before);
  });

  test("gives memberships in organizations and teams that the same file makes", async () => {
    const fay = await comes(here, { subject: "fay", email: "fay@example.com" });
    await apply(
      "organizations: { dawn: { teams: { first: {} } } }\npeople: { fay@example.com: { memberships: { dawn: { role: organization-admin, team: first } } } }",
    );
    expect((await shown(fay)).memberships).toMatchObject([{ organization: "dawn", team: { name: "first" } }]);
  });
});

describe("export", () => {
  test("has the people for whom something was set by hand, and applying it changes nothing, here or elsewhere", async () => {
    const slugs = ["acme", "globex"];
    for (const { port } of [here, there])
      for (const organization of slugs) await port.manage.createTeam({ organization, name: "team" });
    let round = 0;
    await holds(
      fc.asyncProperty(fc.array(personArbitrary, { minLength: 1, maxLength: 4 }), fc.boolean(), async (all, full) => {
        round += 1;
        for (const [index, person] of all.entries()) {
          const known = {
            subject: `r${round} s ${index}`,
            email: `r${round}-${index}@example.com`,
            ...(person.ruled ? { organization: "acme" } : {}),
          };
          await comes(there, known);
          await build(await comes(here, known), slugs, person);
        }
        const exported = async ({ cli }: ApplyNode) => {
          const out = (await cli.typed(["export", ...(full ? ["--all-fields"] : [])])).out;
          return out.includes("\npeople:") ? out.slice(out.indexOf("\npeople:") + 1) : "";
        };
        const text = await exported(here);
        expect(text.includes("people:")).toBe(all.some(isSet));
        const whole = `organizations: {}\n${text}`;
        expect(await apply(whole, "--prune", "--dry-run")).toEqual({ code: 0, out: asTheFile, err: "" });
        expect(await applyTo(there, whole)).toMatchObject({ code: 0, err: "" });
        expect(await exported(there)).toBe(text);
        await forgetAll();
      }),
      times(2, 40),
    );
  });

  test("names them by issuer and subject with their address beside, and leaves them out where organizations are named", async () => {
    const gil = await comes(here, { subject: "gil", email: "gil@example.com" });
    await here.port.manage.giveMembership({ person: gil, role: "viewer" });
    expect((await here.cli.typed("export")).out).toContain(
      `people:\n  # gil@example.com\n  ${issuer} gil:\n    role: viewer\n`,
    );
    expect((await here.cli.json("export --json")).people).toEqual({ [`${issuer} gil`]: { role: "viewer" } });
    expect((await here.cli.typed("export --org acme")).out).not.toContain("people:");
    expect((await here.cli.typed("person list --by-hand")).out).toContain(gil);
  });
});

const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const amount = fc.option(fc.integer({ min: 1, max: 1_000_000 }), { nil: null });
const placeArbitrary = fc.record({
  membership: optional(
    fc.record({
      role: fc.constantFrom("member" as const, "organization-admin" as const),
      team: fc.constantFrom("team", null),
      scopes: fc.option(fc.shuffledSubarray([...scopes] as Scope[], { minLength: 1 })),
      models: fc.option(fc.constant<string[]>(["acme/writer-1"])),
    }),
  ),
  limits: optional(fc.record({ week: amount, requestsPerMinute: amount }).map((limits) => inMoney(limits))),
});
const personArbitrary = fc.record({
  ruled: fc.boolean(),
  suspended: fc.boolean(),
  role: optional(fc.constantFrom("viewer" as const, "admin" as const)),
  places: fc.tuple(placeArbitrary, placeArbitrary),
});
type Built = typeof personArbitrary extends fc.Arbitrary<infer One> ? One : never;

const isSet = ({ suspended, role, places }: Built) =>
  suspended ||
  role !== undefined ||
  places.some(({ membership, limits }) => membership || limits?.week || limits?.requestsPerMinute);

async function build(person: string, slugs: string[], { suspended, role, places }: Built): Promise<void> {
  const { manage } = here.port;
  for (const [index, { membership, limits }] of places.entries()) {
    const organization = slugs[index]!;
    if (membership) await manage.giveMembership({ person, organization, ...membership });
    if (limits) await manage.updatePersonLimits({ person, organization, own: limits });
  }
  if (role) await manage.giveMembership({ person, role });
  if (suspended) await manage.suspendPerson({ person });
}
