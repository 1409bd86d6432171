// No operation removes the last administrator of the service, whoever the caller is, and even if several operations run
// concurrently.

import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { administratorsProblem } from "../../../src/admin/store/administrators.ts";
import { secretOf } from "../../../src/core/auth/credential.ts";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import type { NamedMembership, PersonRole } from "../../../src/core/store/people.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { administratorsOutlook } from "../../../src/stores/postgres/administrators.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { databaseKinds, times } from "../../harness/depth.ts";
import { databaseForTests, withClock } from "../../stores/postgres/databases.ts";

setDefaultTimeout(120_000);
const cli = "cli:root";
const day_ms = 86_400_000;
const uuid = () => Bun.randomUUIDv7();
const serviceRole = (role: PersonRole): NamedMembership => ({
  organization: null,
  team: null,
  role,
  scopes,
  models: null,
});

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  const db = databaseForTests(kind);
  beforeEach(() => db.exec("truncate person, operator cascade"));

  const acts = () => administration(db);
  async function signedIn(memberships: NamedMembership[], subject: string = uuid()): Promise<string> {
    const claims = { issuer: "https://login.example", subject, kind: "person" } as const;
    const person = await people(db).confirm({ id: idOf(uuid(), "per_"), ...claims, memberships });
    return person.id;
  }
  const adminByHand = async () => {
    const id = await signedIn([]);
    await acts().giveMembership(id, serviceRole("admin"), cli);
    return id;
  };
  async function operatorToken(expiresAt: Date | null = null): Promise<string> {
    const id = idOf(uuid(), "op_");
    const rights = { role: "admin", organizationId: null, expiresAt } as const;
    await acts().createOperator({ id, name: uuid(), ...rights, secret: secretOf(`slo_${uuid()}`), actor: cli });
    return id;
  }
  const revoke = (id: string, actor = cli) => acts().revokeOperator({ id, old: false, actor });

  test("no act on the last person takes the role away, whoever acts", async () => {
    const ann = await adminByHand();
    const operator = await operatorToken(new Date(Date.now() + day_ms));
    const before = await acts().findPerson(ann);
    for (const actor of [`person:${ann}`, "operator:bob", cli]) {
      expect(await acts().suspendPerson(ann, actor)).toBe("last_admin");
      expect(await acts().forgetPerson(ann, actor)).toBe("last_admin");
      expect(await acts().takeMembership(ann, null, actor)).toBe("last_admin");
      expect(await acts().giveMembership(ann, serviceRole("viewer"), actor)).toBe("last_admin");
    }
    expect({ ...(await acts().findPerson(ann))!, readAt: before!.readAt }).toEqual(before!);
    // A token that expires does not count as the last administrator.
    expect(await revoke(operator)).toMatchObject({ id: operator });
    expect((await acts().listAudit({ limit: 1 }))[0]).toMatchObject({ action: "operator.revoke" });
  });

  test("a role by a rule counts as one by hand does, and a viewer by hand counts before it", async () => {
    const ann = await signedIn([serviceRole("admin")]);
    expect(await acts().giveMembership(ann, serviceRole("viewer"), `person:${ann}`)).toBe("last_admin");
    const bob = await signedIn([serviceRole("admin")]);
    expect(await acts().giveMembership(bob, serviceRole("viewer"), cli)).toMatchObject({ id: bob });
    expect(await acts().suspendPerson(ann, `person:${bob}`)).toBe("last_admin");
  });

  test("the last operator without an expiry is not revoked, and its token is rotated", async () => {
    const only = await operatorToken();
    expect(await revoke(only)).toBe("last_admin");
    const graceEndsAt = new Date(Date.now() + day_ms);
    const secret = secretOf(`slo_${uuid()}`);
    expect(await acts().rotateOperator({ id: only, secret, graceEndsAt, actor: cli })).toMatchObject({ id: only });
    expect(await acts().revokeOperator({ id: only, old: true, actor: cli })).toMatchObject({ id: only });
    expect(await revoke(only)).toBe("last_admin");
    await adminByHand();
    expect(await revoke(only)).toMatchObject({ id: only });
  });

  test("of two who take each other's rights at once, one remains", async () => {
    for (let round = 0; round < times(2, 6); round++) {
      const [ann, bob] = await Promise.all([adminByHand(), adminByHand()]);
      const [operator, other] = await Promise.all([operatorToken(), operatorToken()]);
      for (const one of [operator, other]) await revoke(one);
      const answers = await Promise.all([
        acts().suspendPerson(bob, `person:${ann}`),
        acts().giveMembership(ann, serviceRole("viewer"), `person:${bob}`),
      ]);
      expect(answers.filter((answer) => answer === "last_admin")).toHaveLength(1);
      expect(await administratorsOutlook(db)).toMatchObject({ isLasting: true });
      const third = await operatorToken();
      const left = answers[0] === "last_admin" ? bob : ann;
      const last = await Promise.all([revoke(third, `person:${left}`), acts().forgetPerson(left, `operator:${third}`)]);
      expect(last.filter((answer) => answer === "last_admin")).toHaveLength(1);
      // Removes all administrators before the next round, a state that expiry and the identity provider can also cause.
      await db.exec(
        "update membership set role = 'viewer' where role = 'admin'; update operator set revoked_at = now()",
      );
    }
  });

  test("the expiry of the last token is told 14 days before and after, and a new operator ends that", async () => {
    expect(administratorsProblem(await administratorsOutlook(db))).toBeNull();
    const expiresAt = new Date("2031-03-20T12:00:00Z");
    await operatorToken(expiresAt);
    const at = (days: number) =>
      withClock(db, new Date(expiresAt.getTime() + days * day_ms), async () =>
        administratorsProblem(await administratorsOutlook(db)),
      );
    expect(await at(-14.1)).toBeNull();
    expect(await at(-13.9)).toStartWith("the last token that can administer expires at 2031-03-20 12:00 UTC;");
    expect(await at(13.9)).toStartWith("nobody can administer over the network since 2031-03-20 12:00 UTC;");
    expect(await at(14.1)).toBeNull();
    await operatorToken();
    expect(await at(-1)).toBeNull();
    expect(await at(1)).toBeNull();
  });

  test("the issuer's word takes the last role, which is told, and the command line of a node gives it back", async () => {
    const subject = uuid();
    const ann = await signedIn([serviceRole("admin")], subject);
    expect(administratorsProblem(await administratorsOutlook(db))).toBeNull();
    expect(await signedIn([], subject)).toBe(ann);
    expect(administratorsProblem(await administratorsOutlook(db))).toContain("nobody can administer");
    const given = await acts().giveMembership(ann, serviceRole("admin"), cli);
    expect(given).toMatchObject({ memberships: [{ role: "admin", source: "hand" }] });
    expect(administratorsProblem(await administratorsOutlook(db))).toBeNull();
  });
});
