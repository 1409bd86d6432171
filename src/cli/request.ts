/** `sluice request show`: one inference request with its route. For operators: keys see only receipts. */
import type { Command } from "commander";
import { grouped } from "../inference/amounts.ts";
import type { RejectedReport } from "../inference/usage.ts";
import { Request } from "../management/requests.ts";
import { encode } from "../schema/codec.ts";
import { windowKinds } from "../store/ledger.ts";
import { instant } from "../time/written.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import { facts } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { addVerbCommands } from "./verb-command.ts";

export function addRequestCommands(program: Command, context: CommandContext): void {
  const group = program.command("request").description("look up inference requests");
  addVerbCommands(group, context, ["list", addShowCommand]);
}

function addShowCommand(group: Command, { services }: CommandContext): void {
  group
    .command("show")
    .description("show the outcome, route, timing, and receipt of a request")
    .argument("<id>", "ID of the request, from its x-service-request-id header")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag) => {
      const found = await withManagement(services, (manage) => manage.findRequest({ id }));
      if (options.json) return printJson(services.terminal, encode(Request, found));
      services.terminal.out(describeRequest(services.terminal, found));
    });
}

function describeRequest(terminal: Terminal, request: Request): string {
  const { route, usage, units, windows, reportRejected } = request;
  const duration = (value: number | null | undefined) =>
    value === null || value === undefined ? null : `${grouped(value)} ms`;
  const attempts = (route?.tried ?? []).map(
    ({ upstream, replica, outcome, ms }, index) =>
      [`attempt ${index + 1}`, `${upstream}${replica ? ` at ${replica}` : ""}, ${outcome}, ${duration(ms)}`] as const,
  );
  const costs = request.prices
    ? ([
        [
          "tokens",
          `${usage.inputTokens} in, ${usage.cachedInputTokens} cached, ${usage.cacheWriteTokens} written, ${usage.outputTokens} out (${usage.reasoningTokens} reasoning); ${usage.source}`,
        ],
        [
          "units",
          `${grouped(units.charged)} charged, ${grouped(units.held)} held, ${grouped(units.uncharged)} uncharged`,
        ],
        ["report rejected", reportRejected ? describeReport(reportRejected as RejectedReport) : null],
        ["billed to", request.billingSource],
      ] as const)
    : [];
  return facts(terminal, [
    ["id", request.id],
    ["organization", request.organization ?? request.organizationId],
    ["key", request.keyId],
    ["operation", `${request.operation}${request.stream ? ", streamed" : ""}`],
    ["model", request.model],
    ["outcome", [request.outcome, request.errorCode].filter(Boolean).join(": ")],
    ["stopped by", request.stoppedBy],
    ["recovered", request.recovered ? "yes, from its last checkpoint" : null],
    [
      "settled late",
      request.settledLateAt && `${request.settledLateAt}, by its own node; tokens and units are the sums`,
    ],
    ["upstream", route && `${route.upstream}, ${route.attempts === 1 ? "1 attempt" : `${route.attempts} attempts`}`],
    ...attempts,
    ["started", request.createdAt],
    ["first part after", duration(route?.firstPart_ms)],
    ["ended after", duration(request.duration_ms)],
    ...costs,
    ...windowKinds.map((kind) => {
      const window = windows?.[kind] ?? null;
      const after = window?.usagePercentAfter ?? null;
      const percents = window && `${window.usagePercentBefore} %${after === null ? "" : ` → ${after} %`}`;
      return [kind, percents && `${percents}, resets ${instant(window!.resetAt)}`] as const;
    }),
  ]);
}

/** `output above_cap; said: prompt_tokens 12, output_tokens 5000000` */
function describeReport({ input, output, said }: RejectedReport): string {
  const flaws = [input && `input ${input}`, output && `output ${output}`].filter(Boolean).join(", ");
  const words = Object.entries(said).map(([name, word]) => `${name} ${word}`);
  return `${flaws}; said: ${words.join(", ")}`;
}
