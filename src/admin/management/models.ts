/** The models that are served, with prices, context windows and capabilities, for the people who may use them. */
import Type from "typebox";
import { modelKinds } from "../../core/inference/model.ts";
import { grouped, type Money } from "../../core/inference/money.ts";
import { ModelPrices } from "../../core/operations/shapes.ts";
import { ModelId, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { minute } from "../../core/time/written.ts";
import { shortest } from "../store/amounts.ts";
import { exampleOf } from "../store/example.ts";
import { instant } from "../store/shapes.ts";
import type { Column } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { dollars } from "./money.ts";
import { owners, partOf } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Models");

const tokens = () => Type.Integer({ minimum: 0 });

const ServedModel = Type.Object(
  {
    id: ModelId,
    kind: oneOf([...modelKinds]),
    aliases: Type.Array(Type.String(), { description: "Other names that requests may use." }),
    context_tokens: tokens(),
    output_tokens_limit: tokens(),
    capabilities: Type.Array(Type.String()),
    prices: ModelPrices,
    retires_at: nullable(instant("From then on it is not served. Null: no end is planned.")),
    replaced_by: nullable(Type.String({ description: "The model to use in its place." })),
  },
  { $id: "ServedModel" },
);
type ServedModel = Value<typeof ServedModel>;

const example = exampleOf(ServedModel, {
  id: "acme/writer-1",
  aliases: ["writer"],
  contextTokens: 131_072,
  outputTokensLimit: 8192,
  capabilities: ["tools"],
  prices: {
    input: dollars(150_000_000),
    cachedInput: dollars(37_500_000),
    cacheWrite: dollars(187_500_000),
    output: dollars(600_000_000),
  },
});

/** A price with all its digits: two decimals would not suffice for the price of a token. */
const priceOf = ({ amount, currency }: Money) => `${shortest(amount)} ${currency}`;

const columns: Column<ServedModel>[] = [
  { head: "MODEL", cell: ({ id }) => id },
  { head: "KIND", cell: ({ kind }) => kind },
  { head: "CONTEXT", cell: ({ contextTokens }) => grouped(contextTokens) },
  { head: "INPUT, A MILLION", cell: ({ prices }) => priceOf(prices.input) },
  { head: "OUTPUT, A MILLION", cell: ({ prices }) => priceOf(prices.output) },
  { head: "CAPABILITIES", cell: ({ capabilities }) => capabilities.join(", ") || "-", breaks: true, optional: true },
  { head: "RETIRES (UTC)", cell: ({ retiresAt }) => minute(retiresAt) ?? "-", optional: true },
];

export const modelVerbs = [
  verb({
    name: "listModels",
    route: "GET /models",
    summary: "List the models that are served",
    description:
      "With their prices, windows and capabilities, as the answering node serves them. A `member` sees those that their membership allows.",
    roles: owners,
    faults: ["wrong_state"],
    takes: Type.Object({}),
    answers: partOf(ServedModel, "ServedModels"),
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "model list",
      description: "list the models that are served, with prices, windows and capabilities",
      columns,
      none: "No model is served.\n",
    },
    async act(context) {
      const data = await servedModels(context);
      return data ? { data, nextCursor: null } : fail("There is no configuration here.", "wrong_state");
    },
  }),
] as const;

/** The served models that the caller may use; null: this process has no configuration, so it knows no models. */
export async function servedModels(context: ManagementContext): Promise<ServedModel[] | null> {
  const { configuration, now_ms } = context;
  if (!configuration) return null;
  const allowed = await allowedModels(context);
  const isAllowed = ({ id, aliases }: ServedModel) =>
    allowed === null || [id, ...aliases].some((name) => allowed.includes(name));
  const isServed = ({ retiresAt }: ServedModel) => retiresAt === null || retiresAt.getTime() > now_ms();
  const { models } = await configuration();
  const data = models.map(({ routes: _, ...model }) => model);
  return data.filter((model) => isServed(model) && isAllowed(model));
}

/** The models that the caller's membership allows; null: every model. */
async function allowedModels({ people, person, within }: ManagementContext): Promise<readonly string[] | null> {
  if (person === null) return null;
  const known = await people.findPerson(person);
  const memberships = known?.memberships.filter(({ organizationId }) => organizationId === within) ?? [];
  return memberships.some(({ models }) => models === null) ? null : memberships.flatMap(({ models }) => models ?? []);
}
