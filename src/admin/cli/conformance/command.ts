/** `sluice conformance`: does a server speak the three protocols? It works with any server, and needs no engine of ours. */
import type { Command } from "commander";
import type { CommandContext } from "../context.ts";
import { jsonOption, printJson } from "../option.ts";
import { oneLine, painted, type Terminal } from "../terminal.ts";
import { chatSuite } from "./chat.ts";
import { examine, type Finding } from "./examine.ts";
import { type Ask, asking, type Exchange } from "./exchange.ts";
import { messagesSuite } from "./messages.ts";
import { responsesSuite } from "./responses.ts";
import { at, list } from "./rule.ts";

interface Options {
  key?: string;
  model?: string;
  json?: boolean;
}

/** Enough for a model on a laptop. */
const answer_ms = 120_000;
const shown_chars_max = 600;

/** The rules that no client can check alone, because it would have to know what the engine did. */
const beyond = [
  "whether every token of the engine reached the client, in order and once",
  "whether the usage is true",
  "what happens when an engine stalls, breaks off or reports nothing",
];

export function addConformanceCommand(program: Command, { services, exitWith }: CommandContext): void {
  program
    .command("conformance")
    .description("check whether a server speaks chat completions, Messages and Responses as its clients expect")
    .argument("<url>", "base URL of the server, such as http://localhost:8080/v1")
    .option("--key <key>", "key of the server (or SLUICE_CONFORMANCE_KEY)")
    .option("--model <model>", "ID of the model to ask (default: the first that the server lists)")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (url: string, options: Options, command: Command) => {
      const base = baseOf(url);
      if (base === null) command.error(`error: '${url}' is not an HTTP URL`);
      const key = options.key ?? services.environment.SLUICE_CONFORMANCE_KEY ?? null;
      const ask = asking(base, key, answer_ms);
      const model = options.model ?? (await firstModel(ask));
      const findings: Finding[] = [];
      for (const suite of [chatSuite(model), messagesSuite(model), responsesSuite(model)])
        findings.push(...(await examine(suite, ask, key !== null)));
      const { terminal } = services;
      if (options.json)
        printJson(terminal, { url: base.href, model, findings: findings.map(plain), not_checked: beyond });
      else print(terminal, base, model, findings);
      if (findings.some(({ result }) => result === "broken")) exitWith(1);
    });
}

/** The URL with `/v1`, whether or not it was typed. */
function baseOf(text: string): URL | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  url.pathname = `${url.pathname.replace(/\/(v1\/?)?$/, "")}/v1/`;
  return url;
}

async function firstModel(ask: Ask): Promise<string> {
  const { status, json, problem } = await ask({ method: "GET", path: "/models" });
  const id = at(list(at(json, "data"))[0], "id");
  if (typeof id === "string") return id;
  const why = status === null ? problem : `GET /models answered ${status}, without a model`;
  throw new Error(`${why}; name a model with --model`);
}

function print(terminal: Terminal, base: URL, model: string, findings: readonly Finding[]): void {
  terminal.out(`${base.href}, model ${oneLine(model)}\n`);
  for (const [protocol, all] of Map.groupBy(findings, (finding) => finding.protocol)) {
    const count = (result: Finding["result"]) => all.filter((finding) => finding.result === result).length;
    const [kept, broken, unchecked] = [count("kept"), count("broken"), count("unchecked")];
    terminal.out(
      `\n${painted(terminal, "bold", protocol)}: ${kept} rules kept, ${broken} broken, ${unchecked} unchecked\n`,
    );
    for (const finding of all) if (finding.result === "broken") terminal.out(brokenLines(terminal, finding));
    const reasons = all
      .filter(({ result }) => result === "unchecked")
      .map((finding) => `${finding.case}: ${finding.found}`);
    for (const reason of new Set(reasons)) terminal.out(`  unchecked  ${oneLine(reason)}\n`);
  }
  terminal.out(
    `\nNot checked, because it takes an engine whose work is known:\n${beyond.map((line) => `  ${line}\n`).join("")}`,
  );
}

function brokenLines(terminal: Terminal, { case: name, says, found, source, exchange }: Finding): string {
  const entries = [
    ["found", found],
    ["source", source],
    ["request", exchange && requestOf(exchange)],
    ["answer", exchange && answerOf(exchange)],
  ] as const;
  const lines = entries.map(([label, text]) => `          ${label.padEnd(9)}${oneLine(text ?? "none")}\n`);
  return `  ${painted(terminal, "red", "broken")}  ${name}: ${says}\n${lines.join("")}`;
}

function requestOf({ request: { method, path, body } }: Exchange): string {
  return cut(`${method} ${path} ${body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body)}`);
}

function answerOf({ status, text, problem }: Exchange): string {
  return cut(`${status ?? "none"} ${text || (problem ?? "")}`);
}

function cut(text: string): string {
  const line = oneLine(text);
  return line.length > shown_chars_max ? `${line.slice(0, shown_chars_max)}…` : line;
}

/** A finding for JSON: the whole request and answer where something is wrong, so that it can be reported elsewhere. */
function plain({ exchange, ...finding }: Finding): object {
  if (exchange === null || finding.result !== "broken") return finding;
  const { request, status, headers, text, problem } = exchange;
  const { method, path, body } = request;
  return { ...finding, request: { method, path, body }, answer: { status, headers, text, problem } };
}

const help = `
Each rule is from the API reference of OpenAI or Anthropic. A report names the
request, the answer, the rule and its source. It exits with 1 if one is broken.
A run sends some thirty short requests, which the server may charge.

Examples:
  $ sluice conformance http://localhost:8080 --key slk_…
  $ sluice conformance http://localhost:8000/v1 --model qwen3:8b --json`;
