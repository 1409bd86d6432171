import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { commands } from "../../../src/admin/cli/run.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { keyPattern, operatorTokenPattern } from "../../../src/core/auth/key.ts";
import { shell } from "./shell.ts";

const page = join(import.meta.dir, "../../../docs/cli.md");
const build = "SLUICE_WRITE_DOCS=1 node_modules/.bin/bun test test/admin/cli/help.test.ts";

/** `org create`, …: every command that does something, in the order of help. */
function leaves(command: Command, path: string[] = []): string[] {
  return command.commands.flatMap((one) => {
    const name = [...path, one.name()];
    return one.commands.length > 0 ? leaves(one, name) : [name.join(" ")];
  });
}

test("the command line has the command of every verb", () => {
  const there = leaves(commands(shell().services, () => {}));
  const words = verbs.flatMap(({ command }) => (command ? [command.words] : []));
  expect(words.filter((one) => !there.includes(one))).toEqual([]);
});

/** Arguments and options that mean the same wherever they stand: the page describes each once. */
const shared: Record<string, string> = {
  org: "slug or ID of the organization",
  "--org <org>": "slug or ID of the organization",
  team: "ID of the team, or with --org its name",
  person: "ID or verified e-mail address of the person (see: sluice person list)",
  id: "ID of the key",
  operator: "name or ID of the operator",
  upstream: "name of the upstream in the configuration",
  url: "the server (default: where you signed in last)",
  "--at <url>": "the server (default: where you signed in last)",
  "--replica <address>": "only this address of its name (see: sluice upstream list)",
};
const everywhere = /^ {2}(?:-h, --help|--json|-y, --yes|--if-version <n>) .*\n(?: {10,}\S.*\n)*/gm;

interface Told {
  name: string;
  usage: string;
  description: string;
  /** Options, arguments, notes and examples that are told nowhere else on the page. */
  rest: string;
}

function toldBy(name: string, help: string): Told {
  const [usage = "", description = "", ...paragraphs] = help.split("\n\n");
  const alone = (line: string) => {
    const [, subject = "", text = ""] = /^ {2}(\S+(?: <\w+>)?) +(\S.*)$/.exec(line) ?? [];
    return shared[subject] !== text;
  };
  const rest = paragraphs
    .join("\n\n")
    .replaceAll(/^Commands:\n( .*\n)+/gm, "")
    .replaceAll(everywhere, "")
    .split("\n")
    .filter(alone)
    .join("\n")
    .replaceAll(/^(?:Options|Arguments):\n(?=\n|$)/gm, "")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
  return { name, usage: usage.replace("Usage: ", "").replace(" [options]", ""), description, rest };
}

/** The commands of a group: a table of all, and what else there is to say of some. */
function groupOf([group, told]: [string, Told[]]): string {
  const cell = (text: string) => text.replaceAll("\n", " ").replaceAll("|", "\\|");
  const rows = told.map(({ usage, description }) => `| \`${cell(usage)}\` | ${cell(description)} |\n`);
  const details = told.flatMap(({ name, rest }) =>
    rest === "" ? [] : [`\n### \`sluice ${name}\`\n\n\`\`\`text\n${rest}\n\`\`\`\n`],
  );
  return `## ${group}\n\n| command | what it does |\n|---|---|\n${rows.join("")}${details.join("")}`;
}

async function written(): Promise<string> {
  const { typed, services } = shell();
  const told = await Promise.all(
    leaves(commands(services, () => {})).map(async (name) => {
      const { code, out } = await shell().typed(`${name} --help`);
      expect([name, code]).toEqual([name, 0]);
      return toldBy(name, `${out.trimEnd()}\n`);
    }),
  );
  const grouped = Object.groupBy(told, ({ name }) =>
    name.includes(" ") ? `\`sluice ${name.split(" ")[0]}\`` : "Commands of one word",
  );
  const groups = (Object.entries(grouped) as [string, Told[]][]).map(groupOf);
  expect((await typed("--help")).code).toBe(0);
  return `# The command line

This page is generated from the program's help. From source, run \`npm run sluice -- …\` instead of \`sluice …\`.

| in many commands | what it is |
|---|---|
| \`-h\`, \`--help\` | show help |
| \`--json\` | print one JSON value and nothing else, and ask nothing. Instants are ISO 8601 in UTC |
| \`--server URL\` | act on another node, through its operator's port ([management.md](management.md)); also \`SLUICE_SERVER\` |
| \`-y\`, \`--yes\` | skip the confirmation prompt |
| \`--if-version N\` | change it only if it still has this version |
${Object.entries(shared)
  .map(([subject, text]) => `| \`${subject}\` | ${text} |`)
  .join("\n")}

- Exit code 0 means success, 1 failure with a one-line reason on stderr, and 2 a usage error.
- Only \`key create\` and \`key rotate\` print a key (\`key\` in the JSON), only \`operator create\` and
  \`operator rotate\` a token (\`token\`), and only once.
- \`NO_COLOR\` turns colors off. \`SLUICE_DEBUG=1\` adds the stack trace of a failure.
- With \`--server\`, a command needs an operator token in \`SLUICE_OPERATOR_TOKEN\`, or in the file that
  \`SLUICE_OPERATOR_TOKEN_FILE\` names, and no database. Otherwise it connects to \`DATABASE_URL\`, or uses the data folder
  (\`SLUICE_DATA_DIR\`): through the socket of the server that runs there, which only its owner can open, or by opening
  the embedded database.
- For secret scanners: a key matches \`${keyPattern}\`, an operator token \`${operatorTokenPattern}\`. The last six characters
  are the CRC-32 of those before them, in base62 (0-9, A-Z, a-z; most significant first).

${groups.join("\n")}`;
}

test("docs/cli.md matches the help of the program", async () => {
  const now = await written();
  if (process.env.SLUICE_WRITE_DOCS) writeFileSync(page, now);
  if (!existsSync(page) || readFileSync(page, "utf8") !== now) throw new Error(`docs/cli.md is out of date: ${build}`);
});

test("every command and every option has a description, and examples are commands that exist", async () => {
  const { services } = shell();
  const visit = (command: Command): void => {
    for (const one of command.commands) {
      expect([one.name(), one.description()]).not.toContain("");
      for (const option of one.options) expect([one.name(), option.flags, option.description]).not.toContain("");
      visit(one);
    }
  };
  const program = commands(services, () => {});
  visit(program);
  const known = leaves(program);
  const examples = [...(await written()).matchAll(/^ {2}\$ (?:\S+=\S+ )?sluice ([a-z]+(?: [a-z-]+)?)/gm)].map(
    (found) => found[1]!,
  );
  expect(examples.length).toBeGreaterThan(5);
  for (const example of examples)
    expect(known.some((name) => example === name || example.startsWith(`${name} `))).toBe(true);
});

test("a usage error shows the form in which the command is typed, with what it requires", async () => {
  const team = "sluice team create [options] --org <org> --name <name>";
  const adjust =
    "sluice usage adjust [options] <org> --window <session|week|month|extra|all> --amount <±money> --reason <text>";
  for (const [words, problem, form] of [
    ["team create research", "required option '--org <org>' not specified", team],
    ["team create --org", "option '--org <org>' argument missing", team],
    ["team create --org acme", "required option '--name <name>' not specified", team],
    [
      "key create acme",
      "too many arguments for 'create'. Expected 0 arguments but got 1: acme.",
      "sluice key create [options] --org <org> --name <name>",
    ],
    ["key create --org acme", "missing --name", "sluice key create [options] --org <org> --name <name>"],
    ["org create", "missing SLUG", "sluice org create [options] [slug]"],
    ["usage adjust acme --amount 5 --reason x", "required option '--window <window>' not specified", adjust],
    ["usage adjust acme --window", "option '--window <window>' argument missing", adjust],
    ["init", "required option '--upstream <url>' not specified", "sluice init [options] --upstream <url>"],
  ] as const) {
    const usage = `error: ${problem}\nUsage: ${form}\n`;
    expect([words, await shell().typed(words)]).toEqual([words, { code: 2, out: "", err: usage }]);
  }
});

test("`help` takes a command of one word or of two", async () => {
  const { out } = await shell().typed("usage adjust --help");
  expect(out).toContain("There is no default window");
  expect(await shell().typed("help usage adjust")).toEqual({ code: 0, out, err: "" });
  expect((await shell().typed("help usage")).out).toBe((await shell().typed("usage --help")).out);
});

test("help is never wider than the screen", async () => {
  const it = shell();
  Object.assign(it.services.terminal, { width: 80 });
  for (const name of leaves(commands(it.services, () => {}))) {
    for (const line of (await it.typed(`${name} --help`)).out.split("\n")) {
      // Examples are copied, not read: they stay on one line.
      if (!line.startsWith("  $")) expect([name, line, line.length <= 80]).toEqual([name, line, true]);
    }
  }
});
