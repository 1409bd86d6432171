/** `sluice plan …`: the plans of the catalog, as sluice.yaml has them. */
import type { Command } from "commander";
import { Refusal } from "../auth/refusal.ts";
import { shown } from "../auth/wish.ts";
import type { Plan } from "../store/plan.ts";
import type { Building } from "./building.ts";
import { jsonOption, printJson } from "./option.ts";
import { planJson } from "./shown.ts";
import { type Column, facts, grouped, table } from "./table.ts";

export function addPlanCommands(program: Command, { services }: Building): void {
  const plan = program.command("plan").description("plans: what an organization may use, as sluice.yaml says");
  const plansOf = async () => (await services.configuration()).catalog.plans;

  plan
    .command("list")
    .description("list the plans of the catalog")
    .addOption(jsonOption())
    .action(async (options: { json?: boolean }) => {
      const plans = [...(await plansOf()).values()];
      if (options.json) return printJson(services.terminal, plans.map(planJson));
      services.terminal.out(plans.length === 0 ? none : table(services.terminal, columns, plans));
    });

  plan
    .command("show")
    .description("show a plan")
    .argument("<name>", "its name")
    .addOption(jsonOption())
    .action(async (name: string, options: { json?: boolean }) => {
      const plans = await plansOf();
      const found = plans.get(name);
      if (!found) {
        throw new Refusal(`There is no plan '${shown(name)}'. The catalog has: ${[...plans.keys()].join(", ")}.`);
      }
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
