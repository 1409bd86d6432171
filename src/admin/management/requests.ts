/** Single inference requests, with their receipts and routes. */
import Type from "typebox";
import { type Currency, grouped, inWords, moneyOf, percentOf } from "../../core/inference/money.ts";
import type { RejectedReport } from "../../core/inference/usage.ts";
import { count, Money, nullable } from "../../core/protocol/shapes/contract.ts";
import { decode, type Value } from "../../core/schema/codec.ts";
import { type Receipt, type ReceiptWindow, windowKinds } from "../../core/store/ledger.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import { receiptShown, refusedShown } from "../../features/receipts/receipt.ts";
import { RequestReceipt } from "../../features/receipts/receipt-shape.ts";
import { exampleOf } from "../store/example.ts";
import { id, instant } from "../store/shapes.ts";
import { type Facts, flag } from "./command.ts";
import { fail } from "./error.ts";
import { dollars } from "./money.ts";
import { Refusal, refusalFacts, refusalShown } from "./refusal.ts";
import { examples, formed, owners } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Requests");

const ExactWindow = nullable(
  Type.Object({
    usage_percent_before: Type.Number(),
    usage_percent_after: nullable(Type.Number()),
    starts_at: instant("When it began."),
    reset_at: instant("When it ends."),
    limit: nullable(Money),
    used_before: Money,
    used_after: nullable(Money),
  }),
);
export const Request = Type.Object(
  {
    ...RequestReceipt.properties,
    model: nullable(Type.String()),
    windows: nullable(Type.Object({ session: ExactWindow, week: ExactWindow, month: ExactWindow })),
    organization_id: nullable(id("org")),
    organization: nullable(Type.String()),
    key: nullable(Type.String({ description: "The key's name. Null: the key is gone." })),
    person: nullable(Type.String({ description: "Name, else e-mail address. Null: a service key, or erased." })),
    route: nullable(
      Type.Object({
        upstream: Type.String(),
        attempts: count(),
        first_part_ms: nullable(Type.Number({ description: "From the admission, as `duration_ms`." })),
        tried: Type.Array(
          Type.Object({
            upstream: Type.String(),
            replica: Type.Optional(Type.String({ description: "The engine's address, where its name has several." })),
            outcome: Type.String(),
            ms: Type.Number(),
            status: Type.Optional(Type.Integer({ description: "The status of the engine's refusal." })),
            continued: Type.Optional(
              Type.Boolean({ description: "It went on with an answer that another engine had begun." }),
            ),
            said: Type.Optional(
              Type.String({
                description:
                  "The engine's own text of its refusal or of an error inside its answer, at most 500 characters, without credentials and quoted values.",
              }),
            ),
          }),
          {
            description:
              "Each attempt, where there was more than one, the engine refused or reported an error, or its upstream has several addresses.",
          },
        ),
      }),
    ),
    refusal: nullable(Refusal),
    report_rejected: Type.Unknown({ description: "The engine's report that Sluice did not believe; else null." }),
    duration_ms: nullable(Type.Number({ description: "From the admission to the end." })),
  },
  { $id: "Request", description: "The receipt that the key's owner reads, and what only operators see." },
);
export type Request = Value<typeof Request>;

export const requestVerbs = [
  verb({
    name: "findRequest",
    route: "GET /requests/{id}",
    summary: "Look up a request",
    description:
      "By the `x-service-request-id` of its answer: outcome, route, timing, receipt, and why it was refused.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
      id: formed(/^req_[0-9a-f]{32}$/, "a request ID, which begins with 'req_'", "ID of the request."),
    }),
    answers: Request,
    example: {
      takes: { id: examples.request },
      answer: exampleOf(Request, {
        id: examples.request,
        keyId: examples.key,
        endedAt: examples.at.toISOString(),
        outcome: "refused",
        errorCode: "usage_limit_reached",
        limitedBy: "key",
        usage: {
          inputTokens: 0,
          cachedInputTokens: 0,
          cacheWriteTokens: 0,
          outputTokens: 0,
          reasoningTokens: 0,
          searches: 0,
          source: "estimated",
        },
        cost: { held: dollars(0), charged: dollars(0), uncharged: dollars(0) },
        organization: "acme",
        key: "build server",
        refusal: {
          message:
            "The key laptop has used its $10.00 for this week. It starts anew on Monday 23 November 2026 at 00:00 UTC.",
          limit: {
            name: "week",
            value: dollars(10_000_000_000),
            used: dollars(10_000_000_000),
            held: dollars(0),
            needed: dollars(240_000),
            resetAt: examples.at,
          },
        },
        reportRejected: null,
      }),
    },
    command: {
      words: "request show",
      description: "show the outcome, route, timing, and receipt of a request, or why it was refused",
      takes: { id: flag("<id>", "ID of the request, from its x-service-request-id header") },
      says: requestFacts,
    },
    async act({ administration, currency, isInSight, ledger, person, refused }, { id }) {
      const receipt = await ledger.receiptOfAny(id);
      const refusal = receipt ? null : await refused.find(id);
      const owner = receipt?.organizationId ?? refusal?.organizationId;
      const key = await administration.findKey(receipt?.keyId ?? refusal?.keyId ?? "");
      const isOthers = person !== null && key?.personId !== person;
      if (owner === undefined || !isInSight(owner) || isOthers) {
        fail(
          `There is no request ${id}. Records are kept for 13 months, and those of refused requests for 30 days. Requests without a valid key, or that a failing store refused, are not recorded.`,
          "resource_not_found",
        );
      }
      const organization = (await administration.findOrganization(owner))?.slug ?? null;
      const counted = await currency();
      const own = receipt ? receiptShown(receipt, counted) : refusedShown(refusal!, counted);
      const why = refusal && refusalShown(refusal, counted);
      // A `member` sees neither the engine nor the usage of the organization.
      const seen = detailsOf(receipt, counted);
      const details = person === null ? seen : { ...seen, ...hidden };
      const names = { organization, key: key?.name ?? null, person: key?.person ?? null };
      return decode(Request, { ...own, ...details, refusal: why, organization_id: owner, ...names });
    },
  }),
] as const;

const hidden = { windows: null, route: null, report_rejected: null };

/**
 * The fields that `request show` has and lists do not have, from the request's receipt. A refused request has no
 * receipt, so its details are null. A caller with the role `member` sees only the duration.
 */
function detailsOf(receipt: Receipt | null, currency: Currency) {
  const { route = null, windows = null, reportRejected = null, createdAt = null, endedAt = null } = receipt ?? {};
  return {
    windows: windows && {
      session: exact(windows.session, currency),
      week: exact(windows.week, currency),
      month: exact(windows.month, currency),
    },
    route: route && {
      upstream: route.upstream,
      attempts: route.attempts,
      first_part_ms: route.firstPart_ms,
      tried: route.tried ?? [],
    },
    report_rejected: reportRejected,
    duration_ms: createdAt && endedAt ? endedAt.getTime() - createdAt.getTime() : null,
  };
}

/** A usage window of a receipt: the percentages that the request's owner sees, and the amounts behind them. */
function exact({ startsAt, resetAt, limit, usedBefore, usedAfter }: ReceiptWindow, currency: Currency) {
  return {
    usage_percent_before: percentOf(usedBefore, limit),
    usage_percent_after: usedAfter === null ? null : percentOf(usedAfter, limit),
    starts_at: startsAt.toISOString(),
    reset_at: resetAt.toISOString(),
    limit: limit === null ? null : moneyOf(limit, currency),
    used_before: moneyOf(usedBefore, currency),
    used_after: usedAfter === null ? null : moneyOf(usedAfter, currency),
  };
}

function requestFacts(request: Request): Facts {
  const { route, usage, cost, windows, reportRejected } = request;
  const duration = (value: number | null | undefined) =>
    value === null || value === undefined ? null : `${grouped(value)} ms`;
  const attempts = (route?.tried ?? []).map(
    ({ upstream, replica, outcome, status, ms, said }, index) =>
      [
        `attempt ${index + 1}`,
        `${upstream}${replica ? ` at ${replica}` : ""}, ${outcome}${status ? ` (${status})` : ""}, ${duration(ms)}${said ? `: ${said}` : ""}`,
      ] as const,
  );
  const costs = request.prices
    ? ([
        [
          "tokens",
          `${usage.inputTokens} in, ${usage.cachedInputTokens} cached, ${usage.cacheWriteTokens} written, ${usage.outputTokens} out (${usage.reasoningTokens} reasoning); ${usage.source}`,
        ],
        ["inputs", request.inputCount === null ? null : grouped(request.inputCount)],
        ["searches", usage.searches === 0 ? null : grouped(usage.searches)],
        ["cost", `${exactly(cost.charged)} charged, ${exactly(cost.held)} held, ${exactly(cost.uncharged)} uncharged`],
        ["report rejected", reportRejected ? describeReport(reportRejected as RejectedReport) : null],
        ["billed to", request.billingSource],
      ] as const)
    : [];
  return [
    ["id", request.id],
    ["organization", request.organization ?? request.organizationId],
    ["key", request.key === null ? request.keyId : `${request.key} (${request.keyId})`],
    ["person", request.person ? `${request.person} (${request.personId})` : request.personId],
    ["operation", `${request.operation}${request.stream ? ", streamed" : ""}`],
    ["model", request.model],
    ["outcome", [request.outcome, request.errorCode].filter(Boolean).join(": ")],
    ...(request.refusal ? refusalFacts(request.refusal, request.limitedBy) : []),
    ["stopped by", request.stoppedBy && `a usage limit of the ${request.limitedBy}${forModels(request.limitedModels)}`],
    ["recovered", request.recovered ? "yes, from its last checkpoint" : null],
    [
      "settled late",
      request.settledLateAt && `${request.settledLateAt}, by its own node; tokens and cost are the sums`,
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
      return [kind, percents && `${percents}, resets ${instantWritten(window!.resetAt)}`] as const;
    }),
  ];
}

const forModels = (pattern: string | null) => (pattern === null ? "" : ` for ${pattern}`);

/** A receipt shows every amount rounded and with all its digits: `$0.00021 (0.000213440 USD)`. */
const exactly = (money: Request["cost"]["held"]) => `${inWords(money)} (${money.amount} ${money.currency})`;

/** A rejected usage report of an engine, in words: `output above_cap; said: prompt_tokens 12, output_tokens 5000000` */
function describeReport({ input, output, said }: RejectedReport): string {
  const flaws = [input && `input ${input}`, output && `output ${output}`].filter(Boolean).join(", ");
  const words = Object.entries(said).map(([name, word]) => `${name} ${word}`);
  return `${flaws}; said: ${words.join(", ")}`;
}
