/** `sluice request show`: one inference request with its route. For operators: keys see only receipts. */
import type { Command } from "commander";
import { requestJson } from "../http/management/records.ts";
import { grouped } from "../inference/amounts.ts";
import type { RejectedReport } from "../inference/usage.ts";
import type { FoundRequest } from "../management/usage.ts";
import { windowKinds } from "../store/ledger.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import { facts } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export function addRequestCommands(program: Command, { services }: CommandContext): void {
  program
    .command("request")
    .description("look up inference requests")
    .command("show")
    .description("show the outcome, route, timing, and receipt of a request")
    .argument("<id>", "ID of the request, from its x-service-request-id header")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag) => {
      const found = await withManagement(services, (manage) => manage.findRequest({ id }));
      if (options.json) return printJson(services.terminal, requestJson(found));
      services.terminal.out(describeRequest(services.terminal, found));
    });
}

function describeRequest(terminal: Terminal, found: FoundRequest): string {
  const {
    id,
    outcome,
    organization,
    organization_id,
    route,
    report_rejected,
    duration_ms,
    usage,
    units,
    windows,
    ...receipt
  } = requestJson(found);
  const duration = (value: number | null | undefined) =>
    value === null || value === undefined ? null : `${grouped(value)} ms`;
  return facts(terminal, [
    ["id", id ?? null],
    ["organization", organization ?? organization_id],
    ["key", receipt.key_id ?? null],
    ["operation", `${receipt.operation}${receipt.stream ? ", streamed" : ""}`],
    ["model", receipt.model ?? null],
    ["outcome", [outcome, receipt.error_code].filter(Boolean).join(": ")],
    ["stopped by", receipt.stopped_by ?? null],
    ["recovered", receipt.recovered ? "yes, from its last checkpoint" : null],
    ["upstream", route && `${route.upstream}, ${route.attempts === 1 ? "1 attempt" : `${route.attempts} attempts`}`],
    ...(route?.tried ?? []).map(
      ({ upstream, replica, outcome, ms }, index) =>
        [`attempt ${index + 1}`, `${upstream}${replica ? ` at ${replica}` : ""}, ${outcome}, ${duration(ms)}`] as const,
    ),
    ["started", receipt.created_at ?? null],
    ["first part after", duration(route?.first_part_ms)],
    ["ended after", duration(duration_ms)],
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
          ["report rejected", report_rejected && describeReport(report_rejected)],
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

/** `output above_cap; said: prompt_tokens 12, output_tokens 5000000` */
function describeReport({ input, output, said }: RejectedReport): string {
  const flaws = [input && `input ${input}`, output && `output ${output}`].filter(Boolean).join(", ");
  const words = Object.entries(said).map(([name, word]) => `${name} ${word}`);
  return `${flaws}; said: ${words.join(", ")}`;
}
