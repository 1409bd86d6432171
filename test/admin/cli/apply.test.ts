/**
 * `sluice apply` with a file of organizations: it creates what the file says and nothing else, even if it is applied
 * twice, concurrently, or after a crash. An exported file describes the current state, and creates the same on another
 * node.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { secretsFolder } from "../../../src/admin/cli/apply-secrets.ts";
import { differences } from "../../../src/admin/management/apply/difference.ts";
import { perform } from "../../../src/admin/management/apply/perform.ts";
import { readState } from "../../../src/admin/management/apply/state.ts";
import { allOf } from "../../../src/admin/management/page.ts";
import { isKey } from "../../../src/core/auth/credential.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { listKeys, listTeams } from "../management/lists.ts";
import { applyNodes, asTheFile } from "./apply-node.ts";
import { shell } from "./shell.ts";

setDefaultTimeout(120_000);

const { folder, file, freshFolder, here, apply } = applyNodes();

describe("apply", () => {
  test("shows the difference, makes it, and then has nothing to do", async () => {
    const text = "organizations: { made: { name: Made, plan: pro, status: suspended, extra_usage_cap: 9 } }";
    const before = await here.manage.auditHead();
    const dry = await apply(text, "--dry-run", "--exit-code");
    expect(dry.code).toBe(3);
    expect(dry.out).toBe(
      "+ organization made\n    name: Made\n    plan: pro\n    extra_usage_cap: 9\n    status: suspended\n" +
        "1 to add. Nothing was changed: this was a dry run.\n",
    );
    expect((await apply(text, "--dry-run")).code).toBe(0);
    expect(await here.manage.auditHead()).toEqual(before);
    expect((await apply(text)).out).toEndWith("Applied: 1 added.\n");
    const made = await here.manage.findOrganization({ organization: "made" });
    expect(made).toMatchObject({
      plan: "pro",
      status: "suspended",
      extraUsage: { enabled: true, cap: { amount: "9.000000000", currency: "USD" } },
    });
    const after = await here.manage.auditHead();
    expect((await apply(text)).out).toBe(asTheFile);
    expect(await apply(text, "--dry-run", "--exit-code")).toMatchObject({ code: 0, out: asTheFile });
    expect(await here.manage.auditHead()).toEqual(after);
    await apply("organizations: { made: { plan: null, status: active, extra_usage_cap: null } }");
    expect(await here.manage.findOrganization({ organization: "made" })).toMatchObject({
      ...{ plan: null, status: "active", name: "Made" },
      extraUsage: { enabled: false },
    });
  });

  test("renames by the name, sets policies, and closes; a slug that was renamed is refused with the new one", async () => {
    await apply("organizations: { leaving: { name: Before }, moved: {} }");
    const text = "organizations: { leaving: { name: After, key_unused_max_days: 30, keeps_content: false } }";
    const dry = (await apply(text, "--dry-run")).out;
    for (const line of ["name: Before → After", "key_unused_max_days: none → 30", "keeps_content: true → false"])
      expect(dry).toContain(`    ${line}\n`);
    expect((await apply(text)).out).toContain("Applied: 1 changed.");
    expect((await apply(text)).out).toBe(asTheFile);
    expect(await here.manage.findOrganization({ organization: "leaving" })).toMatchObject({
      ...{ name: "After", keyUnusedMaxDays: 30, keyLifetimeMaxDays: null, keepsContent: false },
    });
    await apply("organizations: { leaving: { key_unused_max_days: null, status: closed } }");
    const closed = await here.manage.findOrganization({ organization: "leaving" });
    expect(closed).toMatchObject({ status: "closed", keyUnusedMaxDays: null });
    expect((await apply("organizations: { leaving: { status: closed, plan: pro } }")).out).toBe(asTheFile);
    expect((await apply("organizations: { leaving: { plan: pro } }")).err).toContain("is closed and cannot be changed");
    await here.manage.renameOrganization({ organization: "moved", slug: "moved-on" });
    expect((await apply("organizations: { moved: {} }", "--dry-run")).err).toContain("is called 'moved-on' now");
  });

  test("makes plans, teams, limits, defaults and webhooks, and changes only the limits that it names", async () => {
    const text = `
plans:
  silver: { week: 5000, concurrent_requests: 4 }
organizations:
  teamed:
    plan: silver
    anchor: 2026-11-01
    limits: { keys: { session: 1 }, members: { week: 40 } }
    notices: { url: "https://hooks.example.com", shares: [100, 50] }
    teams:
      research:
        limits:
          own: { week: 20 }
          keys: { requests_per_minute: 60 }
          members: { month: 8.25 }
          models: { acme/*: { month: 5 } }
      interns: {}
    keys:
      lab: { team: research, limits: { own: { month: 9, requests_per_minute: none } } }
      plain: {}`;
    expect((await apply(text, "--secrets", freshFolder())).out).toEndWith("Applied: 6 added.\n");
    expect((await apply(text)).out).toBe(asTheFile);
    const keys = await allOf((page) => here.manage.pageKeys({ organization: "teamed", ...page }));
    expect(Object.fromEntries(keys.map((key) => [key.name, key]))).toMatchObject({
      lab: { team: { name: "research" } },
      plain: { team: null },
    });
    const inForce = async (name: string) => (await here.manage.findKeyLimits({ id: idOf(name) })).inForce;
    const idOf = (name: string) => keys.find((key) => key.name === name)!.id;
    expect(await inForce("lab")).toMatchObject({
      month: { limit: { amount: "9.000000000" }, from: "own" },
      session: { limit: { amount: "1.000000000" }, from: "organization" },
      requestsPerMinute: { limit: null, from: "own" },
    });
    expect(await inForce("plain")).toMatchObject({ session: { from: "organization" }, month: { limit: null } });
    expect(await here.manage.findOrganization({ organization: "teamed" })).toMatchObject({
      nextAnchor: { anchorAt: new Date("2026-11-01") },
    });
    const next = `
plans: { silver: { concurrent_requests: null } }
organizations:
  teamed:
    limits: { keys: { session: null }, members: { week: 45 } }
    notices: { shares: [] }
    teams: { research: { limits: { own: { month: 30 }, members: { month: null }, models: { acme/*: null } } } }
    keys: { lab: { team: interns, limits: { own: { week: 7 } } } }`;
    const { out } = await apply(next);
    for (const line of [
      "~ plan silver\n    concurrent_requests: 4 → none\n",
      "~ organization teamed\n    limits.keys.session: 1 → none\n    limits.members.week: 40 → 45\n    notices.shares: [50, 100] → []\n",
      "~ team teamed/research\n    limits.own.month: none → 30\n    limits.members.month: 8.25 → none\n    limits.models.acme/*.month: 5 → none\n",
      "~ key teamed/lab\n    team: research → interns\n    limits.own.week: none → 7\n",
    ])
      expect(out).toContain(line);
    const { id } = await here.manage.findTeam({ organization: "teamed", team: "research" });
    expect(await here.manage.findTeamLimits({ team: id })).toMatchObject({
      own: { week: { amount: "20.000000000" }, month: { amount: "30.000000000" } },
      keys: { requestsPerMinute: 60 },
      members: { month: null },
      models: {},
    });
    expect(await here.manage.findOrganizationLimits({ organization: "teamed" })).toMatchObject({
      members: { week: { amount: "45.000000000" } },
    });
    expect(await here.manage.findPlan({ name: "silver" })).toMatchObject({ concurrentRequests: null });
    expect((await apply("organizations: { teamed: { notices: null } }")).out).toContain("notices: ");
    await expect(here.manage.findNotices({ organization: "teamed", name: "webhook" })).rejects.toThrow(
      "has no webhook",
    );
  });

  test("a limit may be as high as the organization's, whatever the decimals", async () => {
    for (const amount of ["4.1", "8.2", "0.51", "2.05"]) {
      const slug = `equal-${amount.replace(".", "-")}`;
      const { out, err } = await apply(
        `plans: { exact: { month: ${amount} } }\norganizations: { ${slug}: { plan: exact, teams: { t: { limits: { own: { month: ${amount} } } } } } }`,
      );
      expect([out, err]).toEqual([expect.stringContaining("Applied: "), ""]);
    }
  });

  test("warns of limits for models that nobody serves, with the line and what was perhaps meant, and sets them", async () => {
    const text = `organizations:
  waiting:
    limits: { models: { acme/*: { month: 5 } } }
    teams:
      first:
        limits:
          models:
            acne/*: { month: 5 }
            gone/*: null
      second: { limits: { models: { acne/*: { month: 6 } } } }`;
    const warning = `warning: ${file}:8:13: organizations.waiting.teams.first.limits.models.acne/*: matches no model today, so its limits wait for one; did you mean 'acme/*'?\n`;
    for (const more of [["--dry-run"], [], []])
      expect(await apply(text, ...more)).toMatchObject({ code: 0, err: warning });
    expect(JSON.parse((await apply(text, "--json")).out)).toMatchObject({ unmatched_models: { "acne/*": "acme/*" } });
    const { id } = await here.manage.findTeam({ organization: "waiting", team: "first" });
    expect(await here.manage.findTeamLimits({ team: id })).toMatchObject({ unmatchedModels: { "acne/*": "acme/*" } });
    await apply("organizations: { waiting: { status: closed } }");
  });

  test("with --prune, takes away what a section does not name, and nothing of a section that is left out", async () => {
    const text = `
organizations:
  pruned:
    teams: { kept: {}, gone: {} }
    keys: { kept: { team: gone }, gone: {}, twin: {} }
  bystander:
    teams: { kept: {} }
    keys: { kept: {} }`;
    await apply(text, "--secrets", freshFolder());
    await here.manage.createKey({ organization: "pruned", name: "twin" });
    const next =
      "organizations: { pruned: { teams: { kept: {} }, keys: { kept: { team: null } } }, bystander: { name: B } }";
    expect((await apply(next, "--dry-run")).out).not.toContain("- ");
    const dry = (await apply(next, "--prune", "--dry-run")).out;
    expect(dry).toContain("- key pruned/gone: revoked\n- team pruned/gone: removed\n");
    expect((await apply(next, "--prune")).out).toContain("Applied: 2 changed, 2 removed.");
    expect((await apply(next, "--prune")).out).toBe(asTheFile);
    const left = await listKeys(here.manage, { organization: "pruned" });
    const names = left.flatMap(({ state, name }) => (state === "active" ? [name] : []));
    expect(names.sort()).toEqual(["kept", "twin", "twin"]);
    expect((await listTeams(here.manage, { organization: "pruned" })).map(({ name }) => name)).toEqual(["kept"]);
    expect(await listKeys(here.manage, { organization: "bystander" })).toMatchObject([{ state: "active" }]);
    const silver = "plans: {}\norganizations: {}";
    await here.manage.createPlan({ name: "bronze" });
    const used = await apply(silver, "--prune");
    expect(used.out).toContain("- plan bronze: removed");
  });

  test("makes keys once, with their secrets in files for nobody else, and changes those that there are", async () => {
    const secrets = freshFolder();
    const keyed = (entry: string) => `organizations: { keyed: { keys: { build server: ${entry} } } }`;
    const text = keyed("{ owner: ann, labels: { stage: test }, allow_from: [10.0.0.0/8], expires_at: 2030-01-31 }");
    const before = await here.manage.auditHead();
    expect((await apply(text)).err).toContain("--secrets FOLDER");
    expect((await apply(text, "--secrets", join(folder, "nowhere"))).err).toContain("cannot be written to");
    expect((await apply(text, "--dry-run")).out).toContain("+ key keyed/build server\n");
    expect(await here.manage.auditHead()).toEqual(before);
    const made = JSON.parse((await apply(text, "--secrets", secrets, "--json")).out);
    const [path] = made.secrets as [string];
    expect(made).toMatchObject({
      applied: true,
      failed: [],
      changes: [
        { action: "add", kind: "organization", name: "keyed", secret: null },
        { action: "add", kind: "key", organization: "keyed", name: "build server", secret: path },
      ],
    });
    expect(isKey(readFileSync(path, "utf8").trim())).toBeTrue();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await apply(text)).out).toBe(asTheFile);
    const key = (await listKeys(here.manage, { organization: "keyed" }))[0]!;
    expect(key).toMatchObject({
      ...{ owner: "ann", labels: { stage: "test" }, allowFrom: ["10.0.0.0/8"], version: 1 },
    });
    expect(readdirSync(secrets)).toEqual([`keyed.${key.id}`]);
    const next = keyed("{ owner: null, labels: { stage: null, tier: gold }, expires_at: null }");
    const { out } = await apply(next);
    expect(out).toContain("    owner: ann → none\n");
    expect(out).toContain("    expires_at: 2030-01-31T00:00:00.000Z → none\n");
    expect(await here.manage.findKey({ id: key.id })).toMatchObject({
      ...{ owner: null, labels: { tier: "gold" }, expiresAt: null, allowFrom: ["10.0.0.0/8"], version: 2 },
    });
    await here.manage.createKey({ organization: "keyed", name: "build server" });
    expect((await apply(next)).err).toContain("is the name of 2 keys of keyed");
    await here.manage.revokeKey({ id: key.id });
    expect((await apply(keyed("{ owner: bob }"))).out).toContain("Applied: 1 changed.");
  });

  test("changes nothing where anything in the file is wrong, and says where", async () => {
    await apply("organizations: { acme: { teams: { t: {} } } }");
    const before = await here.manage.auditHead();
    const acme = (fields: string) => `organizations: { fine: {}, acme: { ${fields} } }`;
    for (const [text, says] of [
      [acme("plan: gold"), "acme.plan: There is no plan 'gold'"],
      [acme("key_unused_max_days: 0"), "key_unused_max_days"],
      [acme("plam: pro"), "plam"],
      [acme("status: shut"), "status"],
      [acme("keys: { a: { secret: x } }"), "secret"],
      [acme("keys: { ' ': {} }"), "must be a name"],
      [acme("keys: { a: { expires_at: 2020-01-01 } }"), "keys.a.expires_at: 2020-01-01T00:00:00.000Z is in the past"],
      [acme("keys: { a: { expires_at: 2030-02-31 } }"), "is not an instant"],
      [acme("keys: { a: { allow_from: [nowhere] } }"), "nowhere"],
      [
        acme("keys: { a: { team: nobody } }"),
        "organizations.yaml:1:49: organizations.acme.keys.a.team: there is no team",
      ],
      [acme("teams: { a: { limits: { own: { wek: 1 } } } }"), "did you mean 'week'?"],
      [acme("teams: { a: { limits: { own: { requests_per_minute: 0 } } } }"), "limits.own.requests_per_minute"],
      [acme("notices: { shares: [50] }"), "needs its url"],
      [acme("status: closed, keys: { a: {} }"), "take them out"],
      ["organizations: { fine: {}, No_Slug: {} }", "must be a slug"],
      ["plans: { pro: { week: 7 } }\norganizations: { fine: {} }", "plans.pro: stands in sluice.yaml"],
      [acme("extra_usage_cap: -1"), "extra_usage_cap"],
      [
        "plans: { low: { week: 0.000000005 } }\norganizations: { f: { plan: low, keys: { a: { limits: { own: { week: 6 } } } } } }",
        "above",
      ],
      ["organizations: [", "organizations.yaml:1"],
      ["", "organizations.yaml"],
    ] as const) {
      const { code, err } = await apply(text, "--secrets", folder);
      expect([text, code]).toEqual([text, 1]);
      expect([text, err]).toEqual([text, expect.stringContaining(says)]);
    }
    expect((await here.cli.typed("apply -f /nowhere.yaml")).err).toContain("there is no file");
    expect(await here.manage.auditHead()).toEqual(before);
  });
});

describe("a run that is cut off, or is not alone", () => {
  test("says what it did, and the next one does the rest", async () => {
    const secrets = freshFolder();
    const text = (model: string) =>
      `organizations:\n  half:\n    teams: { t: {} }\n    keys:\n      good: {}\n      bad: { models: [${model}] }\n      last: {}`;
    const failed = await apply(text("acme/nothing"), "--secrets", secrets, "--json");
    expect(failed.code).toBe(1);
    expect(failed.err).toContain("organizations.yaml:6:7: organizations.half.keys.bad: The catalog has no model");
    expect(JSON.parse(failed.out)).toMatchObject({ applied: false, failed: [expect.stringContaining("keys.bad")] });
    const { out } = await apply(text("acme/writer-1"), "--secrets", secrets);
    expect(out).not.toContain("team half/t");
    expect((await apply(text("acme/writer-1"))).out).toBe(asTheFile);
    const keys = await listKeys(here.manage, { organization: "half" });
    expect(keys.map(({ name }) => name).sort()).toEqual(["bad", "good", "last"]);
    expect(readdirSync(secrets).sort()).toEqual(keys.map(({ id }) => `half.${id}`).sort());
  });

  test("gives a key another secret if it was created and its secret never written, but not if it was used", async () => {
    const secrets = freshFolder();
    const text = "organizations: { lost: { keys: { a: {}, b: {} } } }";
    await apply("organizations: { lost: {} }");
    const a = await here.manage.createKey({ organization: "lost", name: "a" });
    const b = await here.manage.createKey({ organization: "lost", name: "b" });
    await directory(here.owned.db).touch(new Map([[b.id, ""]]), "certain");
    const journal = join(secrets, "apply.journal");
    writeFileSync(journal, '999999999\n["lost","a"]\n["lost","b"]\n');
    expect((await apply(text, "--secrets", secrets, "--dry-run")).out).toContain(
      "~ key lost/a\n    secret: lost → a new one",
    );
    expect((await apply(text, "--secrets", secrets)).out).toContain("Applied: 1 changed.");
    expect(isKey(readFileSync(join(secrets, `lost.${a.id}`), "utf8").trim())).toBeTrue();
    expect(existsSync(journal)).toBeFalse();
    expect(
      (await here.manage.findKey({ id: a.id })).secrets.filter(({ revokedAt }) => revokedAt === null),
    ).toHaveLength(1);
    expect((await apply(text, "--secrets", secrets)).out).toBe(asTheFile);
  });

  test("waits for nobody: another process that writes into the folder is named", async () => {
    const secrets = freshFolder();
    writeFileSync(join(secrets, "apply.journal"), `${process.ppid}\n`);
    const { err } = await apply("organizations: { busy: { keys: { a: {} } } }", "--secrets", secrets);
    expect(err).toContain(`process ${process.ppid} writes secrets into ${secrets} now`);
  });

  test("a key that somebody else made meanwhile is not taken for one whose secret was lost", async () => {
    const { manage } = here;
    const text = "organizations: { meanwhile: { keys: { a: {} } } }";
    const secrets = freshFolder();
    await apply("organizations: { meanwhile: {} }");
    const needs = { limits: true, notices: false, teams: true, keys: true };
    const state = await readState(manage, () => needs);
    const wanted = { organizations: { meanwhile: { keys: { a: {} } } } };
    const { phases } = differences(wanted, state, { prunes: false, now_ms: 0 });
    const theirs = await manage.createKey({ organization: "meanwhile", name: "a" });
    const { failed } = await perform(manage, phases, { saver: secretsFolder(secrets).open(), onDone() {} });
    expect(failed.map(({ cause }) => (cause as Error).message)).toEqual([expect.stringContaining("already has a key")]);
    expect((await apply(text, "--secrets", secrets)).out).toBe(asTheFile);
    expect((await manage.findKey({ id: theirs.id })).secrets).toHaveLength(1);
    expect(readdirSync(secrets)).toEqual(["apply.journal"]);
  });

  test("of runs at once, each thing is made once and its secret is written once", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `k${index}`);
    writeFileSync(
      file,
      `organizations: { raced: { teams: { t: {} }, keys: { ${names.map((name) => `${name}: { team: t }`).join(", ")} } } }`,
    );
    const racers = Array.from({ length: 3 }, () => ({ secrets: freshFolder(), cli: shell({ ...here.cli.services }) }));
    const run = ({ cli, secrets }: (typeof racers)[number]) => cli.typed(["apply", "-f", file, "--secrets", secrets]);
    await Promise.all(racers.map(run));
    for (const racer of racers) expect((await run(racer)).code).toBe(0);
    const keys = await listKeys(here.manage, { organization: "raced" });
    expect(keys.map(({ name }) => name).sort()).toEqual([...names].sort());
    const written = racers.flatMap(({ secrets }) => readdirSync(secrets).filter((name) => name.startsWith("raced.")));
    expect(written.sort()).toEqual(keys.map(({ id }) => `raced.${id}`).sort());
  });

  test("does not overwrite what somebody else has changed since it looked", async () => {
    const { manage } = here;
    await apply("organizations: { watched: { name: One } }");
    const wanted = { organizations: { watched: { name: "Two", key_unused_max_days: 5 } } };
    const needs = { limits: false, notices: false, teams: false, keys: false };
    const state = await readState(manage, () => needs);
    const { phases } = differences(wanted, state, { prunes: false, now_ms: 0 });
    await manage.renameOrganization({ organization: "watched", name: "Theirs" });
    const { done, failed } = await perform(manage, phases, { saver: null, onDone() {} });
    expect([done, failed.map(({ cause }) => (cause as Error).message)]).toEqual([
      [],
      [expect.stringContaining("version 2 now")],
    ]);
    expect(await manage.findOrganization({ organization: "watched" })).toMatchObject({
      ...{ name: "Theirs", keyUnusedMaxDays: null },
    });
  });
});
