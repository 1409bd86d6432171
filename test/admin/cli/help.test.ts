import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { commands } from "../../../src/admin/cli/run.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { keyPattern, operatorTokenPattern } from "../../../src/core/auth/credential.ts";
import { shell } from "./shell.ts";

const page = join(import.meta.dir, "../../../docs/cli.md");
const build = "SLUICE_WRITE_DOCS=1 node_modules/.bin/bun test test/admin/cli/help.test.ts";

/** All commands without subcommands, such as `org create`, in the order of the help text. */
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

/** Options that docs/cli.md describes only once, because they mean the same in every command. */
const everywhere = ["--help", "--json", "--yes", "--if-version"];

/** A command's row in the table of docs/cli.md: its usage, its description, and the names of its options. */
function rowOf(help: string): string {
  const [usage = "", description = "", ...paragraphs] = help.split("\n\n");
  const options = [...paragraphs.join("\n\n").matchAll(/^ {2}(?:-\w, )?(--[\w-]+(?: [<[][^>\]]+[>\]])?)(?= {2}|$)/gm)]
    .map(([, flags]) => flags!)
    .filter((flags) => !everywhere.includes(flags.split(" ")[0]!));
  const cell = (text: string) => text.replaceAll("\n", " ").replaceAll("|", "\\|");
  const typed = usage.replace("Usage: sluice ", "").replace(" [options]", "");
  const names = options.map((flags) => `\`${flags.split(" ")[0]}\``);
  const named = [`\`${cell(typed)}\``, cell(description), names.join(", ")];
  return `| ${named.join(" | ")} |\n`.replace(/ \| {2}\|\n$/, " | |\n");
}

async function helpOf(names: string[]): Promise<{ name: string; help: string }[]> {
  return Promise.all(
    names.map(async (name) => {
      const { code, out } = await shell().typed(`${name} --help`.trim());
      expect([name, code]).toEqual([name, 0]);
      return { name, help: `${out.trimEnd()}\n` };
    }),
  );
}

const allLeaves = () => leaves(commands(shell().services, () => {}));

async function written(): Promise<string> {
  const told = (await helpOf(allLeaves())).map(({ name, help }) => ({ name, row: rowOf(help) }));
  const subjectOf = (name: string) => name.split(" ")[0]!;
  const isFew = (subject: string) => told.filter(({ name }) => subjectOf(name) === subject).length < 3;
  const grouped = Object.groupBy(told, ({ name }) =>
    isFew(subjectOf(name)) ? "General" : `\`sluice ${subjectOf(name)}\``,
  );
  const groups = Object.entries(grouped).map(
    ([group, rows = []]) =>
      `## ${group}\n\n| command | what it does | options |\n|---|---|---|\n${rows.map(({ row }) => row).join("")}`,
  );
  return `# The command line

Every command with its options, generated from \`sluice help COMMAND\`, which describes them, with notes and examples. Type
\`sluice\` before each, or \`npm run sluice --\` in a clone.

| in many commands | what it is |
|---|---|
| \`--json\` | print one JSON value, and ask nothing. Instants are ISO 8601 in UTC |
| \`--server URL\` | act on another node, through its operator's port ([management.md](management.md)); also \`SLUICE_SERVER\` |
| \`-y\`, \`--yes\` | skip the confirmation prompt |
| \`--if-version N\` | change it only if it still has this version |
| \`<org>\`, \`<team>\`, \`<person>\`, \`<operator>\` | the slug or name, or the ID; of a person the ID or a verified e-mail address. A team's name needs \`--org\` |

- Exit code 0 means success, 1 failure with a one-line reason on stderr, and 2 a usage error.
- Only \`key create\` and \`key rotate\` print a key (\`key\` in the JSON), only \`operator create\` and
  \`operator rotate\` a token (\`token\`), and only once.
- \`NO_COLOR\` turns colors off. \`SLUICE_DEBUG=1\` adds the stack trace of a failure.
- With \`--server\`, a command needs an operator token in \`SLUICE_OPERATOR_TOKEN\`, or in the file that
  \`SLUICE_OPERATOR_TOKEN_FILE\` names. Otherwise it connects to \`DATABASE_URL\`, or to the embedded database in
  \`SLUICE_DATA_DIR\`, through the socket of the server that runs there.
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
  const helps = (await helpOf(["", ...known])).map(({ help }) => help).join("\n");
  const examples = [...helps.matchAll(/^ {2}\$ (?:\S+=\S+ )?sluice ([a-z]+(?: [a-z-]+)?)/gm)].map((found) => found[1]!);
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
      // Example lines may be longer than 80 characters, because users copy them as one line.
      if (!line.startsWith("  $")) expect([name, line, line.length <= 80]).toEqual([name, line, true]);
    }
  }
});

async function completed(words: string[]): Promise<string[]> {
  const { out } = await shell().typed("completion bash");
  const asked = `${out}
COMP_WORDS=(sluice ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const child = Bun.spawn(["bash", "-c", asked], { stdout: "pipe", stderr: "pipe" });
  expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
  return (await child.stdout.text()).split("\n").filter(Boolean);
}

test("bash completes commands, what follows them, and their options", async () => {
  expect(await completed(["or"])).toEqual(["org"]);
  expect(await completed(["operator", ""])).toEqual(expect.arrayContaining(["create", "list", "rotate", "revoke"]));
  expect(await completed(["--json", "key", "create", "--sc"])).toEqual(["--scopes"]);
  expect(await completed(["org", "show", "acme", "--js"])).toEqual(["--json"]);
  expect(await completed(["nothing", "--"])).toEqual([]);
});

test("zsh and fish get every command; another shell is a usage error", async () => {
  for (const name of ["zsh", "fish"]) {
    const { out, code } = await shell().typed(`completion ${name}`);
    expect(code).toBe(0);
    for (const words of ['"org create"', '"usage adjust"', '"operator rotate"', '"apply"'])
      expect(out).toContain(words);
  }
  const { out } = await shell().typed("completion zsh");
  // zsh runs the file from its fpath at the first Tab, so the script has to complete then, and not only at later Tabs.
  expect(out).toEndWith('if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi\n');
  expect(await shell().typed("completion csh")).toMatchObject({ code: 2, out: "" });
});
