/** `sluice org plan|extra-usage`: the limits of an organization. */
import { type Command, Option } from "commander";
import { grouped } from "../../core/inference/amounts.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, missing, units } from "./option.ts";
import { runVerb } from "./run-verb.ts";

export function addPlan(org: Command, { services }: CommandContext): void {
  org
    .command("plan")
    .description("change the plan of an organization; the new limits apply at once")
    .argument("<org>", "slug or ID of the organization")
    .argument("[plan]", "new plan; to list plans, run: sluice plan list")
    .option("--none", "remove the plan; inference requests are then refused")
    .addOption(jsonOption())
    .action(async (given: string, plan: string | undefined, options: JsonFlag & { none?: true }, command: Command) => {
      if (plan === undefined && !options.none) missing(command, "PLAN or --none");
      if (plan !== undefined && options.none) command.error("error: specify a plan or --none, not both");
      const input = { organization: given, plan: plan ?? null };
      await runVerb(services, options, "setPlan", input, (set) =>
        set.plan === null
          ? `Organization ${set.slug} now has no plan; its inference requests are refused.\n`
          : `Organization ${set.slug} is now on plan ${set.plan}; its usage so far still counts.\n`,
      );
    });
}

export function addExtraUsage(org: Command, { services }: CommandContext): void {
  org
    .command("extra-usage")
    .description("allow or stop usage beyond the limits of the plan")
    .argument("<org>", "slug or ID of the organization")
    .argument("<on|off>", "on allows extra usage, off stops it")
    .addOption(new Option("--cap <units>", "most units in a billing month; required with on").argParser(units(1)))
    .addOption(jsonOption())
    .addHelpText("after", extraExamples)
    .action(async (given: string, state: string, options: JsonFlag & { cap?: number }, command: Command) => {
      const isOn = state === "on";
      if (!isOn && state !== "off") command.error(`error: specify on or off, not '${state.slice(0, 40)}'`);
      if (isOn && options.cap === undefined) missing(command, "--cap UNITS");
      if (!isOn && options.cap !== undefined) command.error("error: --cap is only valid with on");
      const input = { organization: given, capUnits: options.cap ?? null };
      await runVerb(services, options, "setExtraUsage", input, ({ slug, extraUsage }) =>
        extraUsage.enabled
          ? `Extra usage of ${slug} is on, up to ${grouped(extraUsage.capUnits ?? 0)} units a billing month.\n`
          : `Extra usage of ${slug} is off.\n`,
      );
    });
}

const extraExamples = `
Examples:
  $ sluice org extra-usage acme on --cap 20000000
  $ sluice org extra-usage acme off`;
