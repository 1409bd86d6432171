/** `sluice request show`: what became of one inference request, its route included. For operators: keys see receipts. */
import type { Command } from "commander";
import type { FoundRequest } from "../auth/usage-verbs.ts";
import { windowKinds } from "../store/ledger.ts";
import type { Building } from "./building.ts";
import { jsonOption, printJson } from "./option.ts";
import { reached } from "./reach.ts";
import { requestJson } from "./shown.ts";
import { facts, grouped } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export function addRequestCommands(program: Command, { services }: Building): void {
  program
    .command("request")
    .description("single inference requests")
    .command("show")
    .description("show what became of a request: its route, its times, its receipt")
    .argument("<id>", "its id, as x-service-request-id names it")
    .addOption(jsonOption())
    .action(async (id: string, options: { json?: boolean }) => {
      const found = await reached(services, (manage) => manage.findRequest({ id }));
      if (options.json) return printJson(services.terminal, requestJson(found));
      services.terminal.out(shownRequest(services.terminal, found));
    });
}

function shownRequest(terminal: Terminal, found: FoundRequest): string {
  const { id, outcome, organization, organization_id, route, duration_ms, usage, units, windows, ...receipt } =
    requestJson(found);
  const ms = (value: number | null | undefined) =>
    value === null || value === undefined ? null : `${grouped(value)} ms`;
  return facts(terminal, [
    ["id", id ?? null],
    ["organization", organization ?? organization_id],
    ["key", receipt.key_id ?? null],
    ["operation", `${receipt.operation}${receipt.stream ? ", streamed" : ""}`],
    ["model", receipt.model ?? null],
    ["outcome", [outcome, receipt.error_code].filter(Boolean).join(": ")],
    ["stopped by", receipt.stopped_by ?? null],
    ["recovered", receipt.recovered ? "yes, at its last checkpoint" : null],
    ["upstream", route && `${route.upstream}, ${route.attempts === 1 ? "1 attempt" : `${route.attempts} attempts`}`],
    ["begun", receipt.created_at ?? null],
    ["first part after", ms(route?.first_part_ms)],
    ["ended after", ms(duration_ms)],
    ...(receipt.prices && usage && units
      ? ([
          [
            "tokens",
            `${usage.input_tokens} in, ${usage.cached_input_tokens} cached, ${usage.cache_write_tokens} written, ${usage.output_tokens} out (${usage.reasoning_tokens} reasoning); ${usage.source}`,
          ],
          [
            "units",
            `${grouped(units.charged)} charged, ${grouped(units.held)} held, ${grouped(units.uncharged)} uncharged`,
          ],
          ["billed to", receipt.billing_source ?? null],
        ] as const)
      : []),
    ...windowKinds.map((kind) => {
      const window = windows?.[kind];
      const after = window?.usage_percent_after;
      const percents = window && `${window.usage_percent_before} %${after === null ? "" : ` → ${after} %`}`;
      return [kind, percents ? `${percents}, resets ${window?.reset_at}` : null] as const;
    }),
  ]);
}
