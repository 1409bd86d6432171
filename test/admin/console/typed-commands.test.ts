// The commands that pages show for verbs that declare none do on the command line what the page would do.
import { describe, expect, test } from "bun:test";
import { typedLine } from "../../../console/core/command-line.ts";
import { typedCommands } from "../../../console/core/typed-commands.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { shell } from "../cli/shell.ts";

type Given = Record<string, unknown>;

/** The words of a line, as a shell takes them. */
const wordsOf = (line: string) => line.split(" ").slice(1);

describe("a command that a page shows", () => {
  test("is there for every verb that changes something", () => {
    const silent = verbs.filter(({ name, kind, command }) => kind !== "reading" && !command && !typedCommands[name]);
    // What only reads, or is for the system's user alone, has no act.
    expect(silent.map(({ name }) => name).sort()).toEqual(["checkUsage", "createConsoleLink"]);
  });

  test("is taken by the command line, and does what its verb would do", async () => {
    const { typed, json } = shell();
    const line = (verb: string, input: Given) => typedLine(typedCommands[verb]!(input));
    const run = async (verb: string, input: Given): Promise<Given> => {
      const words = wordsOf(line(verb, input));
      return json([...words, "--json"]);
    };
    const organization = "acme";
    expect(await run("createOrganization", { slug: organization, name: "Acme" })).toMatchObject({ name: "Acme" });
    expect(await run("setPlan", { organization, plan: null })).toMatchObject({ plan: null });
    expect(await run("setExtraUsage", { organization, cap_units: 5_000_000 })).toMatchObject({
      extra_usage: { enabled: true, cap_units: 5_000_000 },
    });
    expect(await run("setExtraUsage", { organization, cap_units: null })).toMatchObject({
      extra_usage: { enabled: false },
    });
    const policies = { key_lifetime_max_days: 90, key_unused_max_days: null, keeps_content: false };
    expect(await run("updatePolicies", { organization, ...policies })).toMatchObject(policies);
    for (const verb of ["updateKeyDefault", "updateMemberDefault"])
      expect(await run(verb, { organization, limits: { week: 7, month: null } })).toMatchObject({
        limits: { week: 7, month: null },
      });
    const made = await run("createKey", { organization, name: "agents", owner: "ann", limits: { week: 5 } });
    const id = made.id as string;
    expect(made).toMatchObject({ name: "agents", owner: "ann" });
    expect(await run("updateKey", { id, owner: null, addresses: ["10.0.0.0/8"] })).toMatchObject({
      owner: null,
      allowed_addresses: ["10.0.0.0/8"],
    });
    expect(await run("updateKey", { id, addresses: null, models: null })).toMatchObject({ allowed_addresses: null });
    expect(await run("updateKeyBudget", { id, team: null, limits: { week: null } })).toMatchObject({
      limits: { week: null },
    });
    expect(await run("rotateKey", { id, grace: "1h" })).toMatchObject({ id });
    expect(await run("revokeKey", { id, old: true })).toMatchObject({ id, revoked_at: null });
    expect((await run("revokeKey", { id })).revoked_at).not.toBeNull();
    expect(await run("closeOrganization", { organization })).toMatchObject({ status: "closed" });
    const tried = line("tryModel", { model: "acme/writer-1", message: "Hi", key: id });
    expect((await typed([...wordsOf(tried), "--help"])).code).toBe(0);
    expect((await typed([...wordsOf(line("getFleet", {})), "--help"])).code).toBe(0);
  });

  test("shows the name of what is not filled in yet, and quotes what a shell would read otherwise", () => {
    expect(typedLine(typedCommands.createOrganization!({}))).toBe("sluice org create SLUG");
    expect(typedLine(typedCommands.createKey!({ organization: "acme", name: "it's $HOME" }))).toBe(
      `sluice key create --org acme --name 'it'\\''s $HOME'`,
    );
  });
});
