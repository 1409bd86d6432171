/** `sluice upstream check`: probes the capabilities of an engine, and adds the results to sluice.yaml. */
import { realpathSync, statSync } from "node:fs";
import type { Command } from "commander";
import { amended, difference } from "../../config/check/amend.ts";
import { checkEngine, type Finding } from "../../config/check/check.ts";
import { checkUpstream, type UpstreamChecked } from "../../config/check/upstream.ts";
import { configurationPath } from "../../config/environment.ts";
import { readConfigurationFile } from "../../config/file.ts";
import { withSecrets } from "../../config/secret.ts";
import type { ConfigurationFile } from "../../config/settings/file.ts";
import { readFileBounded } from "../../config/source.ts";
import type { Column } from "../management/command.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import type { CommandContext, Services } from "./services.ts";
import { table } from "./table.ts";
import { painted, type Terminal } from "./terminal.ts";
import { writeWhole } from "./write-whole.ts";

export function addCheckCommand(group: Command, { services }: CommandContext): void {
  group
    .command("check <name>")
    .description("ask an engine what it can do, and show what sluice.yaml lacks")
    .option("--model <model>", "public id, or the engine's name (default: the first that it lists)")
    .option("--long", "also ask a prompt beyond its context; never at a public address")
    .option("--write", "add what was found to sluice.yaml")
    .addOption(jsonOption())
    .addHelpText("after", examples)
    .action(async (name: string, options: CheckOptions) => {
      const { terminal } = services;
      const written = writtenAt(services);
      const isWatched = terminal.interactive && !options.json;
      const checked = await checkUpstream({
        name,
        model: options.model,
        extent: options.long ? "long" : "usual",
        configuration: await services.configuration(),
        file: written?.file ?? null,
        fetch,
        nowSeconds: Math.floor(services.now_ms() / 1000),
        check: checkEngine,
        ...(isWatched ? { asks: (does: string) => terminal.err(`whether it ${does} …\n`) } : {}),
      });
      if (options.write && !written)
        throw new Error("There is no sluice.yaml to write to. Create one: sluice init --upstream URL");
      const before = written?.text ?? "";
      const after = amended(before, checked.additions);
      const lines = difference(before, after);
      const isWritten = options.write === true && lines.length > 0;
      if (!options.json) print(terminal, checked, { lines, path: written?.path ?? "", isWritten });
      if (isWritten) write(written!, after, services);
      if (options.json) printJson(terminal, jsonOf(checked, lines, isWritten));
    });
}

interface CheckOptions extends JsonFlag {
  model?: string;
  long?: boolean;
  write?: boolean;
}

interface Written {
  path: string;
  text: string;
  file: ConfigurationFile;
}

/** The current sluice.yaml; null if there is no such file, or if the environment defines the engine instead. */
function writtenAt({ environment: given }: Services): Written | null {
  const { environment } = withSecrets(given, readFileBounded);
  if (environment.SLUICE_UPSTREAM_URL?.trim()) return null;
  const { path } = configurationPath(environment);
  const bytes = readFileBounded(path);
  if (bytes === null) return null;
  return { path, text: new TextDecoder().decode(bytes), file: loaded(bytes, path, environment) };
}

function loaded(bytes: Uint8Array, path: string, environment: Services["environment"]): ConfigurationFile {
  const read = readConfigurationFile({
    bytes,
    path,
    environment,
    readFile: readFileBounded,
    upstreamFromEnvironment: false,
  });
  if ("problems" in read) throw new Error(read.problems.join("; "));
  return read.file;
}

/** Replaces the file and keeps its permissions. If the path is a link, the link's target is replaced. */
function write({ path }: Written, text: string, { environment }: Services): void {
  loaded(new TextEncoder().encode(text), path, withSecrets(environment, readFileBounded).environment);
  const place = realpathSync(path);
  writeWhole(place, text, statSync(place).mode & 0o777);
}

const verdicts = ["yes", "no", "unknown"] as const;

function columnsOn(terminal: Terminal): Column<Finding>[] {
  return [
    { head: "ENGINE", cell: ({ verdict }) => verdict },
    { head: "DIALECT", cell: ({ expected, verdict }) => expectation(expected, verdict) },
    { head: "THE ENGINE", cell: ({ does }) => does, breaks: terminal.width !== null },
    { head: "SEEN", cell: ({ saw }) => saw, breaks: true },
  ];
}

function expectation(expected: Finding["expected"], verdict: Finding["verdict"]): string {
  if (expected === null || expected === "unknown") return "";
  return verdict !== "unknown" && verdict !== expected ? `${expected} (!)` : expected;
}

function print(
  terminal: Terminal,
  { upstream, model, dialect, isFound, findings, notes }: UpstreamChecked,
  { lines, path, isWritten }: { lines: string[]; path: string; isWritten: boolean },
): void {
  const origin = isFound ? "found by its signs" : "as sluice.yaml has it";
  const counts = verdicts.map((verdict) => `${findings.filter((one) => one.verdict === verdict).length} ${verdict}`);
  terminal.out(
    `${upstream.url}, ${model}, ${upstream.protocol}, dialect ${dialect} (${origin}): ${counts.join(", ")}.\n\n`,
  );
  terminal.out(table(terminal, columnsOn(terminal), findings));
  for (const note of notes) terminal.out(`\n${painted(terminal, "yellow", note)}\n`);
  if (lines.length === 0) {
    terminal.out("\nNothing to add to sluice.yaml.\n");
    return;
  }
  terminal.out(
    `\n${lines.map((line) => painted(terminal, line.startsWith("+") ? "green" : "red", line)).join("\n")}\n`,
  );
  terminal.out(
    isWritten
      ? `\nAdded to ${path}. Review it, then reload: SIGHUP.\n`
      : `\nTo add this to ${path}, run the command with --write.\n`,
  );
}

function jsonOf(
  { upstream, model, dialect, findings, additions, notes }: UpstreamChecked,
  lines: string[],
  isWritten: boolean,
) {
  const { name, url, protocol } = upstream;
  const rows = additions.map(({ path, name: row, value }) => ({
    path: [...path, ...(row === null ? [] : [row])],
    value,
  }));
  return {
    upstream: name,
    url,
    protocol,
    model,
    dialect,
    findings,
    rows,
    difference: lines,
    notes,
    written: isWritten,
  };
}

const examples = `
Four questions find what the model is for, and of one that chats some forty
more are asked, each with at most 64 tokens for its answer. The
verdicts are yes, no and unknown: a model that calls no tool proves nothing.
--write adds rows for yes and no, and changes and removes nothing.

Examples:
  $ sluice upstream check main
  $ sluice upstream check main --model qwen/qwen3-32b --write
  $ sluice upstream check main --long --json`;
