/** `sluice init`: a sluice.yaml for an engine that is already there. */
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Command, Option } from "commander";
import { Refusal } from "../auth/refusal.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../upstream/target.ts";
import type { Building } from "./building.ts";
import { jsonOption, printJson } from "./option.ts";

export function addInitCommand(program: Command, { services }: Building): void {
  program
    .command("init")
    .description("ask an engine for its models and write a sluice.yaml for it")
    .requiredOption("--upstream <url>", "the engine's base URL, up to and with /v1")
    .addOption(
      new Option("--protocol <name>", "what it speaks").choices(upstreamProtocols).default("openai-chat" as const),
    )
    .option("--output <file>", "the file to write", "sluice.yaml")
    .option("--force", "replace the file if it exists")
    .addOption(jsonOption())
    .addHelpText("after", examples)
    .action(async (options: InitOptions) => {
      const { upstream, protocol, output, force } = options;
      const taken = () => new Refusal(`${output} exists already. Choose another --output, or replace it with --force.`);
      if (!force && existsSync(output)) throw taken();
      const apiKey = services.environment.SLUICE_UPSTREAM_KEY || null;
      const draft = await services.draftConfiguration({ url: upstream, protocol, apiKey });
      try {
        writeFileSync(output, draft.yaml, { flag: force ? "w" : "wx" });
      } catch (cause) {
        if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") throw taken();
        throw cause;
      }
      writeFileSync(join(dirname(output), "sluice.schema.json"), draft.schema);
      if (options.json) return printJson(services.terminal, { file: output, models: draft.models });
      const shown = draft.models.slice(0, 5).join(", ") + (draft.models.length > 5 ? ", …" : "");
      services.terminal.out(
        `Wrote ${output} with ${draft.models.length} model${draft.models.length === 1 ? "" : "s"}: ${shown}.\n` +
          "Look at capabilities and prices in it, then: sluice serve\n",
      );
    });
}

interface InitOptions {
  upstream: string;
  protocol: UpstreamProtocol;
  output: string;
  force?: boolean;
  json?: boolean;
}

const examples = `
A key that the engine needs is read from SLUICE_UPSTREAM_KEY; the file holds
only that variable's name.

Examples:
  $ sluice init --upstream http://127.0.0.1:11434/v1
  $ SLUICE_UPSTREAM_KEY=… sluice init --upstream https://engine.example/v1 --protocol openai-responses`;
