/** `sluice org plan|extra-usage`: the limits of an organization. */
import { type Command, Option } from "commander";
import { grouped } from "../inference/amounts.ts";
import { Organization } from "../management/organizations.ts";
import { encode } from "../schema/codec.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, missing, tell, units } from "./option.ts";

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
      const organization = await withManagement(services, (manage) =>
        manage.setPlan({ organization: given, plan: plan ?? null }),
      );
      tell(
        services.terminal,
        options,
        encode(Organization, organization),
        organization.plan === null
          ? `Organization ${organization.slug} now has no plan; its inference requests are refused.\n`
          : `Organization ${organization.slug} is now on plan ${organization.plan}; its usage so far still counts.\n`,
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
      const organization = await withManagement(services, (manage) =>
        manage.setExtraUsage({ organization: given, capUnits: options.cap ?? null }),
      );
      const { slug, extraUsage } = organization;
      tell(
        services.terminal,
        options,
        encode(Organization, organization),
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
