/** `sluice init`: writes a sluice.yaml for engines that already run. */
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Command, Option } from "commander";
import type { InitEngine } from "../../config/init.ts";
import { withSecrets } from "../../config/secret.ts";
import { readFileBounded } from "../../config/source.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../core/upstream/codecs.ts";
import { codeOf } from "./calling.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import type { CommandContext } from "./services.ts";

export function addInitCommand(program: Command, { services }: CommandContext): void {
  program
    .command("init")
    .description("write a sluice.yaml for engines: their models, and what they do when asked")
    .requiredOption(
      "--upstream <url>",
      "an engine's base URL, including /v1; repeatable, also as NAME=URL",
      (one: string, before: string[] = []) => [...before, one],
    )
    .addOption(
      new Option("--protocol <name>", "protocol that the engines speak")
        .choices(upstreamProtocols)
        .default("openai-chat" as const),
    )
    .option("--output <file>", "file to write", "sluice.yaml")
    .option("--force", "replace the file if it exists")
    .addOption(jsonOption())
    .addHelpText("after", examples)
    .action(async (options: InitOptions) => {
      const { upstream, protocol, output, force } = options;
      const taken = () => new Error(`${output} already exists. Choose another --output, or replace it with --force.`);
      if (!force && existsSync(output)) throw taken();
      const { environment, problems } = withSecrets(services.environment, readFileBounded);
      if (problems.length > 0) throw new Error(problems.join("; "));
      const draft = await services.draftConfiguration(enginesIn(upstream, environment), protocol);
      try {
        writeFileSync(output, draft.yaml, { flag: force ? "w" : "wx" });
      } catch (cause) {
        if (codeOf(cause) === "EEXIST") throw taken();
        throw cause;
      }
      writeFileSync(join(dirname(output), "sluice.schema.json"), draft.schema);
      if (options.json) return printJson(services.terminal, { file: output, models: draft.models });
      const models = draft.models.slice(0, 5).join(", ") + (draft.models.length > 5 ? ", …" : "");
      services.terminal.out(
        `Wrote ${output} with ${draft.models.length} model${draft.models.length === 1 ? "" : "s"}: ${models}.\n` +
          "Review its capabilities and prices, then run: sluice serve\n",
      );
    });
}

const keyVariable = "SLUICE_UPSTREAM_KEY";

/**
 * The engines whose URLs were typed. If there are several, each needs a variable of its own for its API key, so that no
 * engine receives another engine's key.
 */
function enginesIn(typed: readonly string[], environment: Readonly<Record<string, string | undefined>>): InitEngine[] {
  const engines = typed.map((one, at) => {
    const [, name, url] = /^([A-Za-z0-9][A-Za-z0-9._-]{0,62})=(https?:.*)$/i.exec(one) ?? [];
    return { name: name ?? (typed.length === 1 ? "main" : `engine-${at + 1}`), url: url ?? one };
  });
  const names = engines.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new Error(`two engines have the name ${twice}. Name each: --upstream NAME=URL`);
  if (engines.length > 1 && environment[keyVariable])
    throw new Error(
      `${keyVariable} is for one engine. Of several, each has its own: ${variableOf(names[0]!)}, and so on.`,
    );
  return engines.map((engine) => {
    const variable = engines.length === 1 ? keyVariable : variableOf(engine.name);
    return { ...engine, apiKey: environment[variable] || null, keyVariable: variable };
  });
}

const variableOf = (name: string) => `${keyVariable}_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;

interface InitOptions extends JsonFlag {
  upstream: string[];
  protocol: UpstreamProtocol;
  output: string;
  force?: boolean;
}

const examples = `
The engine is asked some twenty short questions for the first of its models that
chats, and four for each of the first 16 that it says nothing of: whether it
chats, completes prompts, embeds or ranks.
If the engine needs a key, set SLUICE_UPSTREAM_KEY; of several, each has its
own, such as SLUICE_UPSTREAM_KEY_GPU_2 for the engine gpu-2. The file contains
only the names of these variables, not the keys.

A model that several engines serve gets a route to each. To add an engine
later, see docs/engines.md, A second engine.

Examples:
  $ sluice init --upstream http://127.0.0.1:11434/v1
  $ sluice init --upstream gpu-1=http://10.0.0.7:8000/v1 \\
      --upstream gpu-2=http://10.0.0.8:8000/v1
  $ SLUICE_UPSTREAM_KEY=… sluice init --upstream https://engine.example/v1 --protocol openai-responses`;
