/** Inference requests as a list, with their callers, models and outcomes. */
import Type from "typebox";
import { type Currency, grouped, inWords, moneyOf } from "../../core/inference/money.ts";
import { count, ModelId, Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { meteredOperations } from "../../core/store/ledger.ts";
import { minute } from "../../core/time/written.ts";
import { type ListedRequest, listedOutcomes, type RequestQuery } from "../store/request-list.ts";
import { id, instant } from "../store/shapes.ts";
import { type Column, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { dollars } from "./money.ts";
import { type Narrowing, narrowedBy } from "./narrowing.ts";
import { examples, limitIn, moment, owners, partOf, partOfIds, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Requests");

const ListedRequestShape = Type.Object(
  {
    id: id("req"),
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    key_id: nullable(id("key")),
    key: nullable(Type.String({ description: "The key's name. Null: the key is gone." })),
    person_id: nullable(id("per")),
    person: nullable(Type.String({ description: "Name, else e-mail address. Null: a service key, or erased." })),
    team_id: nullable(id("team")),
    team: nullable(Type.String({ description: "Name. Null: no team." })),
    operation: oneOf([...meteredOperations]),
    model: nullable(ModelId),
    stream: nullable(Type.Boolean()),
    outcome: oneOf(listedOutcomes, { description: "`cancelled`: the client disconnected." }),
    error_code: nullable(Type.String()),
    stopped_by: nullable(Type.String()),
    recovered: Type.Boolean({ description: "Settled by another node than the one that ran it." }),
    upstream: nullable(Type.String({ description: "The upstream that was asked last. Null while it runs." })),
    attempts: nullable(Type.Integer({ minimum: 0, description: "How many times an engine was asked." })),
    created_at: instant("When it was admitted, or refused."),
    ended_at: nullable(instant("When it was settled, or refused. Null: it runs.")),
    first_part_ms: nullable(Type.Number()),
    input_tokens: Type.Integer({
      minimum: 0,
      description: "Without tokens read from or written to a cache. While it runs, as of its last checkpoint.",
    }),
    cached_input_tokens: count(),
    cache_write_tokens: count(),
    output_tokens: count(),
    reasoning_tokens: count(),
    cost: Type.Object({ held: Money, charged: Money, uncharged: Money }),
  },
  { $id: "ListedRequest" },
);
type Listed = Value<typeof ListedRequestShape>;

const example: Listed = {
  id: examples.request,
  organizationId: examples.organization,
  organization: "acme",
  keyId: examples.key,
  key: "build server",
  personId: null,
  person: null,
  teamId: examples.team,
  team: "research",
  operation: "chat.completions",
  model: "acme/writer-1",
  stream: true,
  outcome: "completed",
  errorCode: null,
  stoppedBy: null,
  recovered: false,
  upstream: "gpu-1",
  attempts: 1,
  createdAt: examples.at,
  endedAt: examples.at,
  firstPart_ms: 310,
  inputTokens: 1200,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 300,
  reasoningTokens: 0,
  cost: { held: dollars(900_000), charged: dollars(240_000), uncharged: dollars(0) },
};

const columns: Column<Listed>[] = [
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

function outcomeOf({ outcome, errorCode }: Listed): string {
  return errorCode === null ? outcome : `${outcome}: ${errorCode}`;
}

function tokensOf({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: Listed): string {
  return `${grouped(inputTokens + cachedInputTokens + cacheWriteTokens)} + ${grouped(outputTokens)}`;
}

export const requestListVerbs = [
  verb({
    name: "pageRequests",
    route: "GET /requests",
    summary: "List requests",
    description:
      "Inference requests, newest first: running, ended and refused ones. A page reads a limited number of rows, so it can have fewer than `limit` items, or none, although `next_cursor` says that more may follow.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
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
    }),
    answers: partOf(ListedRequestShape, "ListedRequests"),
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
      parts: "enough",
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

interface Filters extends Narrowing {
  model?: string;
  operation?: RequestQuery["operation"];
  outcome?: RequestQuery["outcome"];
  upstream?: string;
  from?: Date;
  to?: Date;
  cursor?: string;
}

async function queryOf(context: ManagementContext, filters: Filters): Promise<Omit<RequestQuery, "limit">> {
  const { model, operation, outcome, upstream, from, to, cursor } = filters;
  if (context.person !== null && upstream !== undefined) fail("Engines are the administrators' to see.");
  if (from && to && from >= to) fail("'from' must be before 'to'.");
  const ids = await narrowedBy(context, filters);
  return { ...ids, model, operation, outcome, upstream, from, to, before: cursor };
}

/** The request without the engine that answered it, which a `member` may not see. */
function withoutEngine(request: Listed): Listed {
  return { ...request, upstream: null, attempts: null };
}

function listed(request: ListedRequest & { organization: string }, currency: Currency): Listed {
  const { requestId, held, charged, uncharged, ...rest } = request;
  const money = (nanos: number) => moneyOf(nanos, currency);
  return { ...rest, id: requestId, cost: { held: money(held), charged: money(charged), uncharged: money(uncharged) } };
}
