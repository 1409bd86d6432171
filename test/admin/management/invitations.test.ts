// Invitations (docs/identity.md, Invitations): the first person who signs in by the named issuer with the verified address
// accepts the invitation, once. Attacks: another issuer; an address that nobody verified or that only looks the same; a
// second sign-in; an expired or revoked invitation; another organization; and an inviter who lost the role meanwhile.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import type { Claims, Issuer } from "../../../src/core/auth/identity.ts";
import { confirmPerson } from "../../../src/features/identity/confirm.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { issuer } from "../../harness/members.ts";
import { apart, codeOf, worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(60_000);
const acme = { organization: "acme" };
const email = "zoe@example.com";
const world = worldForTests(({ manage, teams }) =>
  manage.updateTeamLimits({ team: teams.research, members: { week: "7" } }),
);

const tried = (act: Parameters<typeof apart>[1]) => apart(world, act);

const settings = { rules: [], groupsMaxAge_ms: 0, keysOfLeavers: "keep", confirmedMax_ms: 1 } as never;
const issuerNamed = (name: string) => ({ issuer: name, subject: ["sub"], groupsClaim: "groups" }) as unknown as Issuer;

/**
 * Confirms a person by these claims of an issuer, as at a sign-in in a browser; or, if `isSignIn` is false, as at a
 * later use of the sign-in.
 */
const comes = (db: Database, claims: Claims, { from = issuer, isSignIn = true } = {}) =>
  confirmPerson(
    { people: people(db), identity: settings, newUuid: () => Bun.randomUUIDv7() },
    issuerNamed(from),
    { sub: "zoe", email, email_verified: true, ...claims },
    { isSignIn },
  );
const stateOf = async (manage: Management, id: string) =>
  (await manage.pageInvitations()).data.find((one) => one.id === id)!.state;

describe("an invitation", () => {
  test("gives membership, team and limits at the first sign-in, and is taken", () =>
    tried(async ({ lea, root }, db) => {
      const limits = { month: "50" };
      const invited = await lea.createInvitation({ email: "Zoe@Example.com", ...acme, team: "research", limits });
      expect(invited).toMatchObject({ email, issuer, role: "member", team: "research", state: "open" });
      expect(invited.expiresAt.getTime() - invited.createdAt.getTime()).toBe(14 * 86_400_000);
      const { id, memberships } = await comes(db, {});
      const by = `person:${world.people.lea}`;
      expect(memberships).toMatchObject([
        { organization: "acme", role: "member", source: "hand", createdBy: by, team: { name: "research" } },
      ]);
      const { inForce } = await root.findPersonLimits({ person: id, ...acme });
      expect(inForce.month).toEqual({ limit: { amount: "50.000000000", currency: "USD" }, from: "own" });
      expect(inForce.week).toMatchObject({ from: "team" });
      const [taken] = (await lea.pageInvitations()).data;
      expect(taken).toMatchObject({ state: "taken", personId: id, endedBy: "service" });
      const entries = (await root.pageAudit({ ...acme, limit: 10 })).data;
      expect(entries.map(({ action }) => action).slice(0, 2)).toEqual(["invitation.take", "invitation.create"]);
      // The list reads the address from the person; the log's entries do not contain it.
      expect(JSON.stringify(entries.map(({ details }) => details))).not.toContain("zoe@");
    }));

  test("is taken by somebody who came before, in vain", () =>
    tried(async ({ lea }, db) => {
      expect((await comes(db, {})).memberships).toEqual([]);
      await lea.createInvitation({ email, ...acme });
      expect((await comes(db, {})).memberships).toHaveLength(1);
    }));

  test("leaves who is in the organization what they have, and moves nobody into another team", () =>
    tried(async ({ lea, root }, db) => {
      const { id } = await lea.createInvitation({ email, ...acme, role: "organization-admin", team: "support" });
      const { id: person } = await comes(db, {}, { isSignIn: false });
      await root.giveMembership({ person, ...acme, role: "member", team: "research" });
      expect((await comes(db, {})).memberships).toMatchObject([{ role: "member", team: { name: "research" } }]);
      expect(await stateOf(lea, id)).toBe("taken");
      expect(await codeOf(lea.createInvitation({ email, ...acme }))).toBe("already_exists");
    }));

  test("brings back who has keys of a membership by hand that was taken", () =>
    tried(async ({ lea, root }, db) => {
      const { id: person } = await comes(db, {});
      await root.giveMembership({ person, ...acme, role: "organization-admin" });
      await root.createKey({ ...acme, person, name: "app" });
      await root.takeMembership({ person, ...acme });
      await lea.createInvitation({ email, ...acme, team: "research" });
      expect((await comes(db, {})).memberships).toMatchObject([
        { role: "member", source: "hand", team: { name: "research" } },
      ]);
    }));

  test("of before gives nothing back to who was removed since", () =>
    tried(async ({ lea, root }, db) => {
      const { id: person } = await comes(db, {}, { isSignIn: false });
      const { id } = await lea.createInvitation({ email, ...acme, role: "organization-admin" });
      const other = await lea.createInvitation({ email: "max@example.com", ...acme });
      await root.giveMembership({ person, ...acme, role: "organization-admin" });
      await root.takeMembership({ person, ...acme });
      expect([await stateOf(lea, id), await stateOf(lea, other.id)]).toEqual(["revoked", "open"]);
      expect((await comes(db, {})).memberships).toEqual([]);
      const [taken] = (await root.pageAudit({ ...acme, limit: 1 })).data;
      expect(taken).toMatchObject({ action: "membership.take", details: { invitations_revoked: 1 } });
    }));

  test("is refused twice for an address, and for what is no address, issuer, team or role", () =>
    tried(async ({ lea }) => {
      await lea.createInvitation({ email, ...acme });
      expect(await codeOf(lea.createInvitation({ email: "ZOE@example.com", ...acme }))).toBe("already_exists");
      for (const wrong of [
        { email: "zoe" },
        { email: "zoé@example.com" },
        { email: "a@b@c" },
        { issuer: "https://evil.example" },
        { team: "none" },
        { role: "admin" },
        { role: "viewer" },
      ])
        expect(await codeOf(lea.createInvitation({ email: "new@example.com", ...acme, ...wrong } as never))).toMatch(
          /^(invalid_value|resource_not_found)$/,
        );
    }));
});

test("an invitation whose answer was lost is found by its idempotency key", () =>
  tried(async (_, db) => {
    const lea = (key: string) => actingAs(db, callersIn(world)["organization-admin"], key);
    const invited = { email, ...acme };
    const once = await lea("once").createInvitation(invited);
    expect(await lea("once").createInvitation(invited)).toEqual(once);
    const another = { ...invited, email: "another@example.com" };
    expect(await codeOf(lea("once").createInvitation(another))).toBe("idempotency_key_reused");
    // A request that was refused leaves no record of its idempotency key, so the key can be used again.
    expect(await codeOf(lea("again").createInvitation(invited))).toBe("already_exists");
    await lea("none").revokeInvitation({ id: once.id });
    expect(await codeOf(lea("again").createInvitation(invited))).toBe("done");
    expect((await lea("none").pageInvitations()).data).toHaveLength(2);
  }));

test("an invitation whose person was forgotten is not found by its idempotency key", () =>
  tried(async ({ root }, db) => {
    const lea = actingAs(db, callersIn(world)["organization-admin"], "once");
    await lea.createInvitation({ email, ...acme });
    const { id: person } = await comes(db, {});
    await root.forgetPerson({ person });
    expect(await codeOf(lea.createInvitation({ email, ...acme }))).toBe("resource_not_found");
  }));

describe("attacks: nobody takes it", () => {
  const inVain = (claims: Claims, how?: Parameters<typeof comes>[2]) =>
    tried(async ({ lea }, db) => {
      const { id } = await lea.createInvitation({ email, ...acme });
      expect((await comes(db, claims, how)).memberships).toEqual([]);
      expect(await stateOf(lea, id)).toBe("open");
    });

  test("with the same address at another issuer", () => inVain({}, { from: "https://other.example" }));
  test("with an address that the issuer has not verified", () => inVain({ email_verified: false }));
  test("with an address of which the issuer says nothing", () => inVain({ email_verified: undefined }));
  test("with another address", () => inVain({ email: "zoe@example.com.evil.example" }));
  test("with a name in the place of the address", () => inVain({ email: undefined, preferred_username: email }));
  test("by a refresh or a token, which are no sign-in", () => inVain({}, { isSignIn: false }));
  test("with an address that only becomes the same in lower case", () =>
    tried(async ({ lea }, db) => {
      await lea.createInvitation({ email: "kim@example.com", ...acme });
      // The address begins with the Kelvin sign, whose lower case is an ordinary k.
      expect((await comes(db, { email: "\u212Aim@example.com" })).memberships).toEqual([]);
    }));

  test("a second time, be it somebody else with the address", () =>
    tried(async ({ lea, root }, db) => {
      await lea.createInvitation({ email, ...acme });
      const { id: person } = await comes(db, {});
      expect((await comes(db, { sub: "zoe-2" })).memberships).toEqual([]);
      await root.takeMembership({ person, ...acme });
      expect((await comes(db, {})).memberships).toEqual([]);
    }));

  test("after it has expired", () =>
    tried(async ({ lea }, db) => {
      const { id } = await lea.createInvitation({ email, ...acme });
      await db.query(
        "update invitation set created_at = created_at - interval '14 days', expires_at = expires_at - interval '14 days'",
      );
      expect((await comes(db, {})).memberships).toEqual([]);
      expect(await stateOf(lea, id)).toBe("expired");
      expect(await codeOf(lea.revokeInvitation({ id }))).toBe("wrong_state");
      // After that, the same address can be invited again.
      await lea.createInvitation({ email, ...acme });
      expect((await comes(db, {})).memberships).toHaveLength(1);
    }));

  test("after it was revoked", () =>
    tried(async ({ lea }, db) => {
      const { id } = await lea.createInvitation({ email, ...acme });
      const revoked = await lea.revokeInvitation({ id });
      expect(revoked).toMatchObject({ state: "revoked" });
      expect((await comes(db, {})).memberships).toEqual([]);
      expect(await lea.revokeInvitation({ id })).toEqual(revoked);
    }));

  test.each<[why: string, act: (root: Management) => Promise<unknown>]>([
    ["was suspended", (root) => root.suspendPerson({ person: world.people.lea })],
    ["is a member now", (root) => root.giveMembership({ person: world.people.lea, ...acme, role: "member" })],
    ["was erased", (root) => root.forgetPerson({ person: world.people.lea })],
  ])("after who invites %s", (_, act) =>
    tried(async ({ lea, root }, db) => {
      const { id } = await lea.createInvitation({ email, ...acme, role: "organization-admin" });
      await act(root);
      expect((await comes(db, {})).memberships).toEqual([]);
      expect(await stateOf(root, id)).toBe("revoked");
      const [entry] = (await root.pageAudit({ ...acme, limit: 1 })).data;
      expect(entry).toMatchObject({ action: "invitation.revoke", actor: "service" });
    }),
  );

  test("after the operator who invites was revoked", () =>
    tried(async ({ operator, root }, db) => {
      const made = { name: "acme-admin", role: "organization-admin", ...acme } as const;
      const { id: operatorId } = await root.createOperator(made);
      await operator.createInvitation({ email, ...acme });
      await root.revokeOperator({ id: operatorId });
      expect((await comes(db, {})).memberships).toEqual([]);
    }));

  test("after its team was removed, which would have limited them", () =>
    tried(async ({ lea, root }, db) => {
      const team = await root.createTeam({ ...acme, name: "guests" });
      await lea.createInvitation({ email, ...acme, team: team.id });
      await root.removeTeam({ team: team.id });
      expect((await comes(db, {})).memberships).toEqual([]);
    }));

  test("an administrator of another organization neither sees, revokes nor makes one here", () =>
    tried(async ({ lea, gus }) => {
      const { id } = await lea.createInvitation({ email, ...acme });
      expect((await gus.pageInvitations()).data).toEqual([]);
      expect(await codeOf(gus.pageInvitations(acme))).toBe("resource_not_found");
      expect(await codeOf(gus.revokeInvitation({ id }))).toBe("resource_not_found");
      expect(await codeOf(gus.createInvitation({ email: "x@example.com", ...acme }))).toBe("resource_not_found");
      const foreign = { email: "x@example.com", organization: "globex", team: world.teams.research };
      expect(await codeOf(gus.createInvitation(foreign))).toBe("resource_not_found");
      expect(await codeOf(lea.revokeInvitation({ id: `inv_${"f".repeat(32)}` }))).toBe("resource_not_found");
    }));
});

test("the address goes with personal data", () =>
  tried(async ({ lea, root }, db) => {
    await lea.createInvitation({ email, ...acme });
    const { id: person } = await comes(db, {});
    // The person has one revoked and one open invitation.
    const { id } = await root.createInvitation({ email, organization: "globex" });
    await root.revokeInvitation({ id });
    await root.createInvitation({ email, organization: "globex" });
    await root.forgetPerson({ person });
    expect((await root.pageInvitations()).data).toEqual([]);
  }));
