/**
 * `npm run conformance`: checks whether a server follows the three protocols. It works with any server, and needs none
 * of this repository's engines.
 */
import { parseArgs } from "node:util";
import { chatSuite } from "./chat.ts";
import { examine, type Finding } from "./examine.ts";
import { type Ask, asking, type Exchange } from "./exchange.ts";
import { messagesSuite } from "./messages.ts";
import { responsesSuite } from "./responses.ts";
import { at, list } from "./rule.ts";

interface Options {
  base: URL;
  key: string | null;
  model: string | null;
  isJson: boolean;
}

interface Around {
  /** The server's key, which the command line can override. */
  key: string | null;
  out(text: string): void;
  err(text: string): void;
}

/** The time limit for a response, in milliseconds: enough for a model on a laptop. */
const answer_ms = 120_000;
const shown_chars_max = 600;

/** Rules that a client alone cannot check, because it would have to know what the engine did. */
const beyond = [
  "whether every token of the engine reached the client, in order and once",
  "whether the usage is true",
  "what happens when an engine stalls, breaks off or reports nothing",
];

const usage = `Usage: npm run conformance -- URL [--key KEY] [--model MODEL] [--json]

  URL           the base URL of a server, such as http://localhost:8080/v1
  --key KEY     its key (or SLUICE_CONFORMANCE_KEY)
  --model MODEL the ID of the model to ask (default: the first that the server lists)
  --json        prints everything as JSON

Each rule is from the API reference of OpenAI or Anthropic. A report names the request, the answer, the rule and its source. It
exits with 1 if one is broken. A run sends some thirty short requests, which the server may charge.
`;

/** Runs the command, and returns its exit code. */
export async function conformance(args: readonly string[], around: Around): Promise<number> {
  const options = optionsOf(args, around);
  if (options === null) {
    around.err(usage);
    return 2;
  }
  const { base, key, isJson } = options;
  const ask = asking(base, key, answer_ms);
  try {
    const model = options.model ?? (await firstModel(ask));
    const findings: Finding[] = [];
    for (const suite of [chatSuite(model), messagesSuite(model), responsesSuite(model)])
      findings.push(...(await examine(suite, ask, key !== null)));
    const report = { url: base.href, model, findings: findings.map(plain), not_checked: beyond };
    around.out(isJson ? `${JSON.stringify(report, null, 2)}\n` : printed(base, model, findings));
    return findings.some(({ result }) => result === "broken") ? 1 : 0;
  } catch (thrown) {
    around.err(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
    return 1;
  }
}

function optionsOf(args: readonly string[], around: Around): Options | null {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { key: { type: "string" }, model: { type: "string" }, json: { type: "boolean", default: false } },
    });
    const base = positionals.length === 1 ? baseOf(positionals[0]!) : null;
    if (base === null) return null;
    return { base, key: values.key ?? around.key, model: values.model ?? null, isJson: values.json };
  } catch {
    return null;
  }
}

/** The URL with `/v1` at its end, which is added if it is missing; null if the text is no URL. */
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

function printed(base: URL, model: string, findings: readonly Finding[]): string {
  const parts = [`${base.href}, model ${oneLine(model)}\n`];
  for (const [protocol, all] of Map.groupBy(findings, (finding) => finding.protocol)) {
    const count = (result: Finding["result"]) => all.filter((finding) => finding.result === result).length;
    const [kept, broken, unchecked] = [count("kept"), count("broken"), count("unchecked")];
    parts.push(`\n${protocol}: ${kept} rules kept, ${broken} broken, ${unchecked} unchecked\n`);
    for (const finding of all) if (finding.result === "broken") parts.push(brokenLines(finding));
    const reasons = all
      .filter(({ result }) => result === "unchecked")
      .map((finding) => `${finding.case}: ${finding.found}`);
    for (const reason of new Set(reasons)) parts.push(`  unchecked  ${oneLine(reason)}\n`);
  }
  const left = beyond.map((line) => `  ${line}\n`).join("");
  return `${parts.join("")}\nNot checked, because it takes an engine whose work is known:\n${left}`;
}

function brokenLines({ case: name, says, found, source, exchange }: Finding): string {
  const entries = [
    ["found", found],
    ["source", source],
    ["request", exchange && requestOf(exchange)],
    ["answer", exchange && answerOf(exchange)],
  ] as const;
  const lines = entries.map(([label, text]) => `          ${label.padEnd(9)}${oneLine(text ?? "none")}\n`);
  return `  broken  ${name}: ${says}\n${lines.join("")}`;
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

/**
 * A finding as JSON. If the finding is a problem, it includes the complete request and response, so that it can be
 * reported to the server's authors.
 */
function plain({ exchange, ...finding }: Finding): object {
  if (exchange === null || finding.result !== "broken") return finding;
  const { request, status, headers, text, problem } = exchange;
  const { method, path, body } = request;
  return { ...finding, request: { method, path, body }, answer: { status, headers, text, problem } };
}

/** The text on one line, without characters that move a terminal's cursor. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
}
