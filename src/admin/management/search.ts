/**
 * One search over everything that has a name or an ID. A caller finds exactly the things that the lists show to that
 * caller.
 */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { type Rank, type SearchedKind, searchedKinds } from "../store/search.ts";
import { type Column, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { servedModels } from "./models.ts";
import { examples, owners, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Search");

const foundKinds = [...searchedKinds, "request", "model"] as const;
type FoundKind = (typeof foundKinds)[number];

const Found = Type.Object(
  {
    kind: oneOf([...foundKinds]),
    id: Type.String({ description: "Its ID; of a model, its public ID." }),
    name: Type.String({ description: "Its name; of a request, its ID." }),
    organization: nullable(
      Type.String({ description: "The slug of its organization. Null: it has none, or several." }),
    ),
    detail: nullable(Type.String({ description: "A slug, an e-mail address, whose key it is, or an outcome." })),
  },
  { $id: "Found" },
);
type Found = Value<typeof Found>;
type Ranked = Found & { rank: Rank };

const example: Found = {
  kind: "team",
  id: examples.team,
  name: "research",
  organization: "acme",
  detail: null,
};

const columns: Column<Found>[] = [
  { head: "KIND", cell: ({ kind }) => kind },
  { head: "NAME", cell: ({ name }) => name, breaks: true },
  { head: "ORG", cell: ({ organization }) => organization ?? "-" },
  { head: "DETAIL", cell: ({ detail }) => detail ?? "-", breaks: true, optional: true },
  { head: "ID", cell: ({ id }) => id },
];

const found_max = 50;
const found_default = 10;

export const searchVerbs = [
  verb({
    name: "search",
    route: "GET /search",
    summary: "Search",
    description:
      "Organizations, teams, people, keys that are not revoked, and models by a part of the name, in any case; requests, and all but models, by the beginning of the ID. The best match first: the whole name, then its beginning, then a part. Everybody finds what their lists show.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
      text: words("A part of a name, of an e-mail address or of a slug, or the beginning of an ID."),
      kind: Type.Optional(oneOf([...foundKinds], { description: "Only things of this kind." })),
      organization: Type.Optional(words("Only what is in this organization (slug or ID).")),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: found_max,
          description: `How many at most; ${found_default} if absent.`,
          "x-must-be": `a whole number from 1 to ${found_max}`,
        }),
      ),
    }),
    answers: Type.Object({ data: Type.Array(Found) }, { $id: "SearchAnswer" }),
    example: { takes: { text: "res" }, answer: { data: [example] } },
    command: {
      words: "search",
      description: "find organizations, teams, people, keys, requests and models by name or ID",
      takes: {
        text: flag("<text>", "a part of a name or an e-mail address, or the beginning of an ID"),
        kind: { ...flag("--kind <kind>", "only things of this kind"), hasChoices: true },
        organization: flag("--org <org>", "only what is in this organization (slug or ID)"),
        limit: flag("--limit <n>", `number of things, 1 to ${found_max} (default: ${found_default})`),
      },
      columns,
      none: "Nothing was found.\n",
    },
    async act(context, input) {
      const limit = input.limit ?? found_default;
      const asked: SearchQuery = {
        text: input.text,
        organizationId: await context.narrowedTo(input.organization),
        kinds: (context.person === null ? foundKinds : ofMembers).filter((kind) => (input.kind ?? kind) === kind),
        limit,
      };
      const found = [
        ...(await thingsFound(context, asked)),
        ...(await requestsFound(context, asked)),
        ...(await modelsFound(context, asked)),
      ];
      const best = found.sort((one, other) => one.rank - other.rank).slice(0, limit);
      return { data: best.map(({ rank: _, ...one }) => one) };
    },
  }),
] as const;

interface SearchQuery {
  text: string;
  organizationId: string | undefined;
  kinds: readonly FoundKind[];
  limit: number;
}

/** The kinds that a `member` can find: their own keys and requests, and models. */
const ofMembers: readonly FoundKind[] = ["key", "request", "model"];

async function thingsFound({ administration, person }: ManagementContext, asked: SearchQuery): Promise<Ranked[]> {
  const isSearched = (kind: FoundKind): kind is SearchedKind => searchedKinds.some((one) => one === kind);
  return administration.search({ ...asked, kinds: asked.kinds.filter(isSearched), personId: person ?? undefined });
}

/** Searches the list of requests, so that the list's rules decide which requests the caller may see. */
async function requestsFound(
  context: ManagementContext,
  { text, kinds, limit, organizationId }: SearchQuery,
): Promise<Ranked[]> {
  const [, digits] = /^req_([0-9a-f]{4,32})$/.exec(text) ?? [];
  if (digits === undefined || !kinds.includes("request")) return [];
  const { items } = await context.requests.listRequests({
    organizationId,
    personId: context.person ?? undefined,
    from: beginningOf(digits),
    before: following(digits),
    limit,
  });
  const found = items.filter(({ requestId }) => requestId.startsWith(text));
  return (await context.withSlugs(found)).map(({ requestId, organization, outcome }) => ({
    kind: "request",
    id: requestId,
    name: requestId,
    organization,
    detail: outcome,
    rank: 0,
  }));
}

const millisecondDigits = 12;
/** A node makes the IDs by its own clock, which may be ahead of the store's clock by this much. */
const slack_ms = 600_000;

/** The earliest time at which an ID that begins with these digits can have been made, by the store's clock. */
function beginningOf(digits: string): Date {
  const at_ms = Number.parseInt(digits.slice(0, millisecondDigits).padEnd(millisecondDigits, "0"), 16);
  return new Date(Math.max(0, Math.min(at_ms - slack_ms, date_ms_max)));
}
const date_ms_max = Date.UTC(9999, 0);

/** The first ID after all IDs that begin with these digits. */
function following(digits: string): string {
  const next = (BigInt(`0x${digits.padEnd(32, "f")}`) + 1n).toString(16);
  return `req_${next.length > 32 ? "f".repeat(32) : next.padStart(32, "0")}`;
}

async function modelsFound(context: ManagementContext, { text, kinds }: SearchQuery): Promise<Ranked[]> {
  if (!kinds.includes("model")) return [];
  const wanted = text.toLowerCase();
  return ((await servedModels(context)) ?? []).flatMap(({ id, kind, aliases }) => {
    const ranks = [id, id.split("/").at(-1)!, ...aliases].flatMap((name) => rankOf(name.toLowerCase(), wanted) ?? []);
    const found = { kind: "model" as const, id, name: id, organization: null, detail: kind };
    return ranks.length > 0 ? [{ ...found, rank: Math.min(...ranks) as Rank }] : [];
  });
}

function rankOf(name: string, wanted: string): Rank | null {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  return name.includes(wanted) ? 2 : null;
}
