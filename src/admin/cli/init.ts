/** `sluice init`: writes a sluice.yaml for an engine that already runs. */
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Command, Option } from "commander";
import { withSecrets } from "../../config/secret.ts";
import { readFileBounded } from "../../config/source.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../core/upstream/codecs.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";

export function addInitCommand(program: Command, { services }: CommandContext): void {
  program
    .command("init")
    .description("write a sluice.yaml for an engine: its models, and what it does when asked")
    .requiredOption("--upstream <url>", "the engine's base URL, including /v1")
    .addOption(
      new Option("--protocol <name>", "protocol that the engine speaks")
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
      const apiKey = environment.SLUICE_UPSTREAM_KEY || null;
      const draft = await services.draftConfiguration({ url: upstream, protocol, apiKey });
      try {
        writeFileSync(output, draft.yaml, { flag: force ? "w" : "wx" });
      } catch (cause) {
        if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") throw taken();
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

interface InitOptions extends JsonFlag {
  upstream: string;
  protocol: UpstreamProtocol;
  output: string;
  force?: boolean;
}

const examples = `
The engine is asked some twenty short questions for the first of its models that
chats, and four for each of the first 16 that it says nothing of: whether it
chats, completes prompts, embeds or ranks.
If the engine needs a key, set SLUICE_UPSTREAM_KEY. The file contains only the
name of that variable, not the key.

Examples:
  $ sluice init --upstream http://127.0.0.1:11434/v1
  $ SLUICE_UPSTREAM_KEY=… sluice init --upstream https://engine.example/v1 --protocol openai-responses`;
