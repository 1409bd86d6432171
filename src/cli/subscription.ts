/** `sluice org plan|anchor|extra-usage`: what an organization may use, and from when its weeks and months are counted. */
import { type Command, Option } from "commander";
import type { Building } from "./building.ts";
import { jsonOption, missing, printJson, units } from "./option.ts";
import { reached } from "./reach.ts";
import { organizationJson } from "./shown.ts";
import { grouped, instant } from "./table.ts";

interface Format {
  json?: boolean;
}

export function addSubscriptionCommands(org: Command, building: Building): void {
  addPlan(org, building);
  addAnchor(org, building);
  addExtraUsage(org, building);
}

function addPlan(org: Command, { services }: Building): void {
  org
    .command("plan")
    .description("put an organization on another plan; its limits count at once")
    .argument("<org>", "its slug or id")
    .argument("[plan]", "the plan; see: sluice plan list")
    .option("--none", "no plan: inference is refused")
    .addOption(jsonOption())
    .action(async (given: string, plan: string | undefined, options: Format & { none?: true }, command: Command) => {
      if (plan === undefined && !options.none) missing(command, "the PLAN, or --none,");
      if (plan !== undefined && options.none) command.error("error: give a plan or --none, not both");
      const organization = await reached(services, (manage) =>
        manage.setPlan({ organization: given, plan: plan ?? null }),
      );
      if (options.json) return printJson(services.terminal, organizationJson(organization));
      services.terminal.out(
        organization.plan === null
          ? `The organization ${organization.slug} has no plan: its inference is refused from now on.\n`
          : `The organization ${organization.slug} is on the plan ${organization.plan}; what it has used stays.\n`,
      );
    });
}

function addAnchor(org: Command, { services }: Building): void {
  org
    .command("anchor")
    .description("count weeks and months from another instant, when the running month has ended")
    .argument("<org>", "its slug or id")
    .argument("<instant>", "ISO 8601 with a zone, or a date (UTC)")
    .addOption(jsonOption())
    .addHelpText("after", anchorExamples)
    .action(async (given: string, anchor: string, options: Format) => {
      const organization = await reached(services, (manage) => manage.setAnchor({ organization: given, anchor }));
      if (options.json) return printJson(services.terminal, organizationJson(organization));
      const { nextAnchor, slug } = organization;
      services.terminal.out(
        nextAnchor
          ? `The months of ${slug} are counted from ${instant(nextAnchor.anchorAt)} when the running one has ended, on ${instant(nextAnchor.countsFrom)}; its weeks with the first that ends after that.\n`
          : `The months of ${slug} are counted from ${instant(organization.anchorAt)}.\n`,
      );
    });
}

function addExtraUsage(org: Command, { services }: Building): void {
  org
    .command("extra-usage")
    .description("let an organization go on when its plan's windows are full, or no longer")
    .argument("<org>", "its slug or id")
    .argument("<on|off>", "whether it may")
    .addOption(new Option("--cap <units>", "with on: the most it may take in a billing month").argParser(units(1)))
    .addOption(jsonOption())
    .addHelpText("after", extraExamples)
    .action(async (given: string, state: string, options: Format & { cap?: number }, command: Command) => {
      const isOn = state === "on";
      if (!isOn && state !== "off") command.error(`error: say on or off, not '${state.slice(0, 40)}'`);
      if (isOn && options.cap === undefined) missing(command, "--cap UNITS");
      if (!isOn && options.cap !== undefined) command.error("error: --cap goes with on");
      const organization = await reached(services, (manage) =>
        manage.setExtraUsage({ organization: given, capUnits: options.cap ?? null }),
      );
      if (options.json) return printJson(services.terminal, organizationJson(organization));
      const { slug, extraUsage } = organization;
      services.terminal.out(
        extraUsage.enabled
          ? `Extra usage of ${slug} is on, up to ${grouped(extraUsage.capUnits ?? 0)} units a billing month.\n`
          : `Extra usage of ${slug} is off.\n`,
      );
    });
}

const anchorExamples = `
Examples:
  $ sluice org anchor acme 2026-12-01
  $ sluice org anchor acme 2026-12-31T09:30:00+01:00`;
const extraExamples = `
Examples:
  $ sluice org extra-usage acme on --cap 20000000
  $ sluice org extra-usage acme off`;
