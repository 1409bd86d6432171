import { describe, expect, test } from "bun:test";
import { standings } from "../../../src/core/auth/standing.ts";
import { judge, type Principal, type Verdict } from "../../../src/core/auth/verdict.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import type { Credential } from "../../../src/core/store/directory.ts";
import { until } from "../../harness/until.ts";
import { activeCredential } from "./credentials.ts";

const at = new Date("2026-01-01T00:00:00Z");

function credential(name: string, change: Partial<Credential["organization"]> = {}, revoked = false): Credential {
  const { key, organization, ...rest } = activeCredential(at);
  return {
    ...rest,
    key: { ...key, id: `key_${name}`, revokedAt: revoked ? at : null },
    organization: { ...organization, ...change },
  };
}

function rig(options: { ends?: boolean; every_ms?: number } = {}) {
  const verdicts = new Map<string, Verdict>();
  const asked: string[] = [];
  let isAway = false;
  const says = (hash: string, of: Credential) => verdicts.set(hash, judge(of, hash));
  const it = standings({
    authenticator: {
      async standing(hash) {
        asked.push(hash);
        if (isAway) throw new Error("away");
        return verdicts.get(hash)!;
      },
    },
    ends: options.ends ?? true,
    every_ms: options.every_ms ?? 3_600_000,
  });
  const begin = (hash: string, of = credential(hash)) => {
    says(hash, of);
    const ended: string[] = [];
    const standing = it.begin((verdicts.get(hash) as { principal: Principal }).principal, (fault: Fault) =>
      ended.push(fault.code),
    );
    return { standing, ended };
  };
  const away = (is: boolean) => {
    isAway = is;
  };
  return { ...it, begin, says, asked, away };
}

const settled = () => Bun.sleep(0);

describe("what runs", () => {
  for (const [name, after, code] of [
    ["a revoked key", credential("a", {}, true), "revoked_api_key"],
    ["a suspended organization", credential("a", { status: "suspended" }), "organization_suspended"],
    ["an organization without a plan", credential("a", { plan: null }), "no_active_plan"],
  ] as const) {
    test(`ends with ${name}: ${code}`, async () => {
      const it = rig();
      const [one, two] = [it.begin("a"), it.begin("a")];
      it.says("a", after);
      it.changed("org_1");
      await settled();
      expect([one.ended, two.ended]).toEqual([[code], [code]]);
      await it.stop();
    });
  }

  test("goes on after that where it is set so, and follows its organization's plan", async () => {
    const it = rig({ ends: false });
    const { standing, ended } = it.begin("a");
    it.says("a", credential("a", { plan: "starter" }));
    it.changed("org_1");
    await settled();
    expect(standing.principal.organization.plan).toBe("starter");
    it.says("a", credential("a", {}, true));
    it.changed("key_a");
    await settled();
    expect(ended).toEqual([]);
    await it.stop();
  });

  test("is asked for only where the message concerns it, and no more when it has ended", async () => {
    const it = rig();
    const { standing } = it.begin("a");
    it.begin("b", credential("b", { id: "org_2" }));
    it.changed("org_1");
    it.changed("org_3");
    it.changed("key_a");
    await settled();
    expect(it.asked).toEqual(["a", "a"]);
    standing[Symbol.dispose]();
    it.changed("org_1");
    await settled();
    expect(it.asked).toHaveLength(2);
    await it.stop();
  });

  test("is not lost sight of when an earlier request of its key is given up twice", async () => {
    const it = rig({ every_ms: 5 });
    const { standing } = it.begin("a");
    standing[Symbol.dispose]();
    const later = it.begin("a");
    standing[Symbol.dispose]();
    it.says("a", credential("a", {}, true));
    // No message reports the revocation: the node finds it when it looks up every key with a running request.
    await until(() => later.ended.includes("revoked_api_key"));
    await it.stop();
  });

  test("ends without a message too, and not while the directory is away", async () => {
    const it = rig({ every_ms: 5 });
    const { ended } = it.begin("a");
    it.away(true);
    it.says("a", credential("a", {}, true));
    await until(() => it.asked.length > 1, 5_000, "the directory to be asked");
    expect(ended).toEqual([]);
    it.away(false);
    await until(() => ended.length > 0, 5_000, "the end");
    await it.stop();
  });
});
