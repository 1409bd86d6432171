// Runs Codex once in a folder of its own, with a home directory of its own, and records its requests to the service.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentFolder, filesOf, runWatched, type WatchedRun } from "../agent-process.ts";
import type { ChatAsked } from "../scripted-engine.ts";
import type { Instead } from "../traffic.ts";

const run_ms = 90_000;

/**
 * Codex recognizes models by the part of the ID after the slash. For this model, it declares its patch tool as a
 * free-form tool.
 */
export const patching = "acme/gpt-5.5";
/** For this model, Codex declares its tools in an input item instead of `tools`. */
export const scripting = "acme/gpt-6-sol";

export interface Run extends Pick<WatchedRun, "code" | "asked" | "took_ms"> {
  /** The last text of the agent; empty if there was none. */
  answer: string;
  /** The texts in which Codex showed the model's reasoning. */
  thoughts: string[];
  /** Codex's error messages, one per line. */
  errors: string;
  /** The token counts that Codex reported; undefined if the turn failed. */
  usage: { input_tokens: number; output_tokens: number } | undefined;
  /** The files in Codex's folder after the run, by name. */
  files: Record<string, string>;
}

export interface RunOptions {
  /** The base URL of the service, or a function that returns the base URL of the node for each new connection. */
  url: string | (() => string);
  key: string;
  model: string;
  prompt: string;
  /** The files in Codex's folder at the start, by name. */
  files?: Record<string, string>;
  /** Whether to use Codex's built-in provider with only the base URL changed, instead of a provider in config.toml. */
  builtIn?: true;
  /** Additional lines of the provider's table in config.toml. */
  provider?: string;
  /** Additional lines at the top of config.toml. */
  config?: string;
  /** The JSON Schema that the final text must match. */
  schema?: object;
  instead?: Instead;
  /** How long a run may take, in milliseconds. */
  limit_ms?: number;
}

export async function runAgent(options: RunOptions): Promise<Run> {
  using session = startSession(options);
  return await session.turn(options.prompt);
}

export interface Session extends Disposable {
  /**
   * Runs Codex once: the first run starts the session, each later one resumes it. `config` has settings for this run
   * only.
   */
  turn(prompt: string, config?: string[]): Promise<Run>;
}

/** Starts a session in a folder of its own, with a home directory of its own. */
export function startSession(options: Omit<RunOptions, "prompt">): Session {
  const folder = agentFolder(options.files);
  const { work, home } = folder;
  let turns = 0;
  return {
    async turn(prompt, config = []) {
      turns += 1;
      const resumes = turns === 1 ? [] : ["resume", "--last"];
      const settings = config.flatMap((setting) => ["-c", setting]);
      return await ran({ ...options, work, home, words: ["exec", ...resumes, ...settings], prompt });
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

interface Ran extends RunOptions {
  work: string;
  home: string;
  words: string[];
}

async function ran(options: Ran): Promise<Run> {
  const { work, home, key, url, instead, limit_ms = run_ms } = options;
  const watching = { name: "Codex", url, instead, limit_ms };
  const { out, code, asked, took_ms } = await runWatched({ work, home }, watching, (proxy) => {
    writeFileSync(join(home, "config.toml"), options.builtIn ? atHome(options) : configFor(proxy, options));
    const schema = join(home, "schema.json");
    if (options.schema) writeFileSync(schema, JSON.stringify(options.schema));
    // Codex works in a folder made for it. Its sandbox is switched off, because not every container supports it.
    const words = [...options.words, "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    if (options.schema) words.push("--output-schema", schema);
    if (options.builtIn) words.push("-c", `openai_base_url="${proxy}/v1"`);
    const env = { CODEX_HOME: home, ...(options.builtIn ? { CODEX_API_KEY: key } : { SLUICE_KEY: key }) };
    return { command: [process.env.CODEX ?? "codex", ...words, options.prompt], env };
  });
  return { code, ...faultMessage(out), files: filesOf(work), asked, took_ms };
}

/** Codex settings that prevent requests to other hosts. */
function atHome({ model, config = "" }: RunOptions): string {
  return `model = "${model}"
check_for_update_on_startup = false
${config}

[analytics]
enabled = false

[features]
plugins = false
`;
}

/** The configuration that docs/clients.md shows, with the settings that prevent requests to other hosts. */
function configFor(url: string, options: RunOptions): string {
  return `model_provider = "sluice"
${atHome(options)}
[model_providers.sluice]
name = "Sluice"
base_url = "${url}/v1"
env_key = "SLUICE_KEY"
wire_api = "responses"
${options.provider ?? ""}
`;
}

/** Whether the request asks the engine for the summary that replaces a long conversation. */
export function isAskedForSummary({ messages }: ChatAsked): boolean {
  return JSON.stringify(messages.at(-1)?.content ?? "").includes("about to be replaced by what you write now");
}

/** How often Codex had the service compact the conversation. */
export function compactions({ asked }: Run): number {
  return asked.filter(({ body }) => JSON.stringify(body?.input ?? "").includes('"compaction_trigger"')).length;
}

interface Event {
  type: string;
  item?: { type: string; text?: string; message?: string };
  message?: string;
  error?: { message: string };
  usage?: Run["usage"];
}

function faultMessage(out: string): Pick<Run, "answer" | "thoughts" | "errors" | "usage"> {
  const events = out
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);
  const said = (kind: string) =>
    events.flatMap(({ type, item }) => (type === "item.completed" && item?.type === kind ? [item.text ?? ""] : []));
  return {
    answer: said("agent_message").at(-1) ?? "",
    thoughts: said("reasoning"),
    errors: events.flatMap(({ message, error, item }) => message ?? error?.message ?? item?.message ?? []).join("\n"),
    usage: events.find(({ type }) => type === "turn.completed")?.usage,
  };
}
