/** `sluice plan …`: the plans in force, and those that are made at run time. */
import type { Command } from "commander";
import { grouped } from "../inference/amounts.ts";
import { AuditEntry } from "../management/audit.ts";
import type { LimitChanges } from "../management/limits.ts";
import { Plan } from "../management/plans.ts";
import { type LimitName, limitNames } from "../management/shapes.ts";
import { encode } from "../schema/codec.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { limitOption } from "./limits.ts";
import { type JsonFlag, jsonOption, tell, type VersionFlag, versionOption, wholeNumber } from "./option.ts";
import type { Services } from "./services.ts";
import { type Column, facts, minute, table } from "./table.ts";

interface LimitFlags extends JsonFlag {
  limit?: LimitChanges;
}

export function addPlanCommands(program: Command, { services }: CommandContext): void {
  const plan = program.command("plan").description("show the plans in force, and manage those outside sluice.yaml");
  addReading(plan, services);
  addCreate(plan, services);
  addUpdate(plan, services);
  addRemove(plan, services);
  addHistory(plan, services);
}

function addReading(plan: Command, services: Services): void {
  plan
    .command("list")
    .description("list all plans")
    .addOption(jsonOption())
    .action(async (flags: JsonFlag) => {
      const { data: plans } = await withManagement(services, (manage) => manage.listPlans());
      const words = plans.length === 0 ? none : table(services.terminal, columns, plans);
      tell(
        services.terminal,
        flags,
        plans.map((one) => encode(Plan, one)),
        words,
      );
    });

  plan
    .command("show")
    .description("show a plan")
    .argument("<name>", "name of the plan")
    .addOption(jsonOption())
    .action(async (name: string, flags: JsonFlag) => {
      const found = await withManagement(services, (manage) => manage.findPlan({ name }));
      tell(services.terminal, flags, encode(Plan, found), described(services, found));
    });
}

function addCreate(plan: Command, services: Services): void {
  plan
    .command("create")
    .description("create a plan; it is in force on every node within a second")
    .argument("<name>", "name of the plan")
    .addOption(limitOption("--limit", "what it allows; what is left out is not limited"))
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (name: string, { limit, ...flags }: LimitFlags) => {
      const made = await withManagement(services, (manage) => manage.createPlan({ name, ...limit }));
      tell(services.terminal, flags, encode(Plan, made), described(services, made));
    });
}

function addUpdate(plan: Command, services: Services): void {
  plan
    .command("update")
    .description("change the limits of a plan; they count at once, for running requests too")
    .argument("<name>", "name of the plan")
    .addOption(limitOption("--limit", "what it allows; what is left out stays"))
    .addOption(versionOption("plan"))
    .addOption(jsonOption())
    .action(async (name: string, { limit, ifVersion, ...flags }: LimitFlags & VersionFlag) => {
      const input = { name, ...limit, version: ifVersion };
      const updated = await withManagement(services, (manage) => manage.updatePlan(input));
      tell(services.terminal, flags, encode(Plan, updated), described(services, updated));
    });
}

function addRemove(plan: Command, services: Services): void {
  plan
    .command("remove")
    .description("remove a plan that no organization is on")
    .argument("<name>", "name of the plan")
    .addOption(jsonOption())
    .action(async (name: string, flags: JsonFlag) => {
      const removed = await withManagement(services, (manage) => manage.removePlan({ name }));
      tell(services.terminal, flags, encode(Plan, removed), `Removed plan '${removed.name}'.\n`);
    });
}

function addHistory(plan: Command, services: Services): void {
  plan
    .command("history")
    .description("show what was in force when, newest first")
    .argument("<name>", "name of the plan, also of one that was removed")
    .option("--limit <n>", "number of changes, 1 to 1000 (default: 100)", wholeNumber(1, 1000))
    .addOption(jsonOption())
    .action(async (name: string, { limit, ...flags }: JsonFlag & { limit?: number }) => {
      const page = await withManagement(services, (manage) => manage.planHistory({ name, limit }));
      const words = page.data.length === 0 ? unchanged : table(services.terminal, changes, page.data);
      tell(
        services.terminal,
        flags,
        page.data.map((entry) => encode(AuditEntry, entry)),
        words,
      );
    });
}

function described({ terminal }: Services, plan: Plan): string {
  const rows = [...columns, ...details].map(({ head, cell }) => [head.toLowerCase(), cell(plan)] as const);
  return facts(terminal, rows);
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
  { head: "SOURCE", cell: (plan) => plan.source, optional: true },
];
const details: Column<Plan>[] = [
  { head: "VERSION", cell: (plan) => String(plan.version) },
  { head: "CHANGED", cell: (plan) => minute(plan.changedAt) ?? "not in force yet" },
];

type Limits = Partial<Record<LimitName, number | null>> | null;

/** `session 5,000, week no limit`: each limit that differs. */
function differences({ details }: AuditEntry): string {
  const { limits, before } = details as { limits?: Limits; before?: Limits };
  if (!limits) return "removed";
  const names = limitNames.filter((name) => (limits[name] ?? null) !== (before?.[name] ?? null));
  const from = (name: LimitName) => (before ? `${limit(before[name] ?? null)} → ` : "");
  return names.map((name) => `${name} ${from(name)}${limit(limits[name] ?? null)}`).join(", ") || "no limits";
}

const changes: Column<AuditEntry>[] = [
  { head: "TIME", cell: (entry) => minute(entry.at) ?? "" },
  { head: "ACTOR", cell: (entry) => entry.actor },
  { head: "ACTION", cell: (entry) => entry.action },
  { head: "LIMITS", cell: differences },
];

const createExamples = `
Examples:
  $ sluice plan create gold --limit session=5000000,week=20000000 --limit concurrent_requests=16
  $ sluice org plan acme gold
`;
const unchanged = "It has not changed since it came into force.\n";
const none = "The catalog has no plans. Add one under 'plans:' in sluice.yaml, or run: sluice plan create NAME\n";
