/** `sluice plan …`: the plans that sluice.yaml defines. */
import type { Command } from "commander";
import { grouped } from "../admission/amounts.ts";
import { planJson } from "../http/management/records.ts";
import { plan as parsePlan } from "../management/parse.ts";
import type { Plan } from "../store/plan.ts";
import { remoteServer, withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import { type Column, facts, table } from "./table.ts";

export function addPlanCommands(program: Command, { services }: CommandContext): void {
  const plan = program.command("plan").description("show the plans that sluice.yaml defines");
  /** Of another node those in force; of this one what the file says, so that no database is needed. */
  const plansOf = async (): Promise<ReadonlyMap<string, Plan>> => {
    if (!remoteServer(services)) return (await services.configuration()).catalog.plans;
    const plans = await withManagement(services, (manage) => manage.listPlans());
    return new Map(plans.map((one) => [one.name, one]));
  };

  plan
    .command("list")
    .description("list all plans")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const plans = [...(await plansOf()).values()];
      if (options.json) return printJson(services.terminal, plans.map(planJson));
      services.terminal.out(plans.length === 0 ? none : table(services.terminal, columns, plans));
    });

  plan
    .command("show")
    .description("show a plan")
    .argument("<name>", "name of the plan")
    .addOption(jsonOption())
    .action(async (name: string, options: JsonFlag) => {
      const plans = await plansOf();
      const found = plans.get(parsePlan(name, [...plans.keys()]))!;
      if (options.json) return printJson(services.terminal, planJson(found));
      const rows = columns.map(({ head, cell }) => [head.toLowerCase(), cell(found)] as const);
      services.terminal.out(facts(services.terminal, rows));
    });
}

const limit = (value: number | null) => (value === null ? "no limit" : grouped(value));

const columns: Column<Plan>[] = [
  { head: "PLAN", cell: (plan) => plan.name },
  { head: "SESSION", cell: (plan) => limit(plan.session) },
  { head: "WEEK", cell: (plan) => limit(plan.week) },
  { head: "MONTH", cell: (plan) => limit(plan.month) },
  { head: "REQUESTS/MIN", cell: (plan) => limit(plan.requestsPerMinute) },
  { head: "TOKENS/MIN", cell: (plan) => limit(plan.tokensPerMinute), optional: true },
  { head: "CONCURRENT", cell: (plan) => limit(plan.concurrentRequests), optional: true },
];

const none = "The catalog has no plans. Add one under 'plans:' in sluice.yaml.\n";
