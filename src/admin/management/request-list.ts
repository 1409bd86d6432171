/** Inference requests as a list, with their callers, models and outcomes. */
import Type from "typebox";
import { type Currency, grouped, inWords, moneyOf } from "../../core/inference/money.ts";
import { oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { meteredOperations } from "../../core/store/ledger.ts";
import { minute } from "../../core/time/written.ts";
import { exampleOf } from "../store/example.ts";
import { type ListedRequest, listedOutcomes, type RequestQuery, ShownRequest } from "../store/request-list.ts";
import { type Column, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { dollars } from "./money.ts";
import { narrowedBy } from "./narrowing.ts";
import { examples, limitIn, moment, owners, partOf, partOfIds, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Requests");

const example = exampleOf(ShownRequest, {
  organization: "acme",
  key: "build server",
  personId: null,
  team: "research",
  model: "acme/writer-1",
  stream: true,
  outcome: "completed",
  upstream: "gpu-1",
  attempts: 1,
  endedAt: examples.at,
  firstPart_ms: 310,
  inputTokens: 1200,
  outputTokens: 300,
  cost: { held: dollars(900_000), charged: dollars(240_000), uncharged: dollars(0) },
});

const columns: Column<ShownRequest>[] = [
  { head: "ID", cell: (request) => request.id },
  { head: "WHEN (UTC)", cell: (request) => minute(request.createdAt) ?? "" },
  { head: "ORG", cell: (request) => request.organization },
  { head: "OUTCOME", cell: outcomeOf, breaks: true },
  { head: "TOKENS", cell: tokensOf },
  { head: "COST", cell: (request) => inWords(request.cost.charged) },
  { head: "MODEL", cell: (request) => request.model ?? "", breaks: true, optional: true },
  { head: "UPSTREAM", cell: (request) => request.upstream ?? "", optional: true },
  { head: "KEY", cell: (request) => request.keyId ?? "", optional: true },
  { head: "PERSON", cell: (request) => request.personId ?? "", optional: true },
];

function outcomeOf({ outcome, errorCode }: ShownRequest): string {
  return errorCode === null ? outcome : `${outcome}: ${errorCode}`;
}

function tokensOf({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: ShownRequest): string {
  return `${grouped(inputTokens + cachedInputTokens + cacheWriteTokens)} + ${grouped(outputTokens)}`;
}

const takes = Type.Object({
  ...partOfIds("req"),
  organization: Type.Optional(words("Only requests of this organization (slug or ID).")),
  team: Type.Optional(words("Only requests whose key was in this team: its ID, or with `organization` its name.")),
  key: Type.Optional(words("Only requests with this key, by its ID.")),
  person: Type.Optional(
    words("Only requests with keys or sign-ins of this person, by the ID or the verified e-mail address."),
  ),
  model: Type.Optional(words("Only requests for this model.")),
  operation: Type.Optional(oneOf([...meteredOperations], { description: "Only requests of this operation." })),
  outcome: Type.Optional(oneOf(listedOutcomes, { description: "Only requests with this outcome." })),
  upstream: Type.Optional(words("Only ended requests that this upstream was asked for last.")),
  from: Type.Optional(moment("Only requests that were admitted, or refused, then or later.")),
  to: Type.Optional(moment("Only requests that were admitted, or refused, before.")),
});

export const requestListVerbs = [
  verb({
    name: "pageRequests",
    route: "GET /requests",
    summary: "List requests",
    description:
      "Inference requests, newest first: running, ended and refused ones. A page reads a limited number of rows, so it can have fewer than `limit` items, or none, although `next_cursor` says that more may follow.",
    roles: owners,
    faults: ["resource_not_found"],
    takes,
    answers: partOf(ShownRequest, "ListedRequests"),
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "request list",
      description: "list inference requests, newest first: running, ended and refused ones",
      takes: {
        organization: flag("--org <org>", "list only requests of this organization (slug or ID)"),
        team: flag("--team <team>", "list only requests of this team (its ID, or with --org its name)"),
        key: flag("--key <key>", "list only requests with this key (its ID)"),
        person: flag(
          "--person <person>",
          "list only requests with keys or sign-ins of this person (ID or e-mail address)",
        ),
        model: flag("--model <model>", "list only requests for this model"),
        operation: { ...flag("--operation <operation>", "list only requests of this operation"), hasChoices: true },
        outcome: { ...flag("--outcome <outcome>", "list only requests with this outcome"), hasChoices: true },
        upstream: flag("--upstream <name>", "list only ended requests that this upstream was asked for last"),
        from: flag("--from <instant>", "list only requests that were admitted, or refused, then or later"),
        to: flag("--to <instant>", "list only requests that were admitted, or refused, before"),
        cursor: flag("--before <id>", "go on with the requests before this one"),
        limit: { ...flag("--limit <n>", "number of requests, 1 to 1000 (default: 50)"), fallback: 50 },
      },
      columns,
      none: "There are no such requests.\n",
      parts: "all",
      help: `
Examples:
  $ sluice request list --org acme --outcome failed
  $ sluice request list --outcome running
  $ sluice request list --key key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --from 2026-11-24 --to 2026-11-25`,
    },
    async act(context, input) {
      const query = await queryOf(context, input);
      const { items, next } = await context.requests.listRequests({ ...query, limit: limitIn(input) });
      const currency = await context.currency();
      const data = (await context.withSlugs(items)).map((one) => listed(one, currency));
      return { data: context.person === null ? data : data.map(withoutEngine), nextCursor: next };
    },
  }),
] as const;

async function queryOf(context: ManagementContext, filters: Value<typeof takes>): Promise<Omit<RequestQuery, "limit">> {
  const { model, operation, outcome, upstream, from, to, cursor } = filters;
  if (context.person !== null && upstream !== undefined) fail("Engines are the administrators' to see.");
  if (from && to && from >= to) fail("'from' must be before 'to'.");
  const ids = await narrowedBy(context, filters);
  return { ...ids, model, operation, outcome, upstream, from, to, before: cursor };
}

/** The request without the engine that answered it, which a `member` may not see. */
function withoutEngine(request: ShownRequest): ShownRequest {
  return { ...request, upstream: null, attempts: null };
}

function listed(request: ListedRequest & { organization: string }, currency: Currency): ShownRequest {
  const { requestId, held, charged, uncharged, ...rest } = request;
  const money = (nanos: number) => moneyOf(nanos, currency);
  return { ...rest, id: requestId, cost: { held: money(held), charged: money(charged), uncharged: money(uncharged) } };
}
