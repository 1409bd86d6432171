/** Wire shapes that belong to no protocol's codec: models, usage, health. docs/design/service.md, The contract. */
import Type from "typebox";
import { modelKinds } from "../inference/model.ts";
import type { Capability } from "../inference/request.ts";
import { instant, ModelId, Money } from "../protocol/shapes/contract.ts";
import { CodexModel } from "./codex-models.ts";

export const ModelPrices = Type.Object(
  {
    input: Money,
    cached_input: Money,
    cache_write: Money,
    output: Money,
    search: Type.Optional(Money),
  },
  {
    $id: "ModelPrices",
    description: "Of a million tokens; `search`: of a thousand searches, each of up to 100 documents of a rank.",
  },
);

const recordKeys = {
  id: ModelId,
  object: Type.Literal("model"),
  created: Type.Integer({ minimum: 0, description: "Unix timestamp, seconds." }),
  owned_by: Type.String({ description: "The organization that made the model." }),
};

export const ModelRecord = Type.Object(recordKeys, { $id: "Model" });

export const ModelList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(ModelRecord, { description: "Every active model." }),
    models: Type.Optional(
      Type.Array(CodexModel, { description: "With `client_version`: the models with tools that this key may use." }),
    ),
  },
  { $id: "ModelList" },
);

const capabilities = {
  tools: 1,
  parallel_tools: 1,
  vision: 1,
  reasoning: 1,
  structured_output: 1,
  logprobs: 1,
  files: 1,
  audio_input: 1,
} satisfies Record<Capability, 1>;

export const ModelDetails = Type.Object(
  {
    ...recordKeys,
    kind: Type.Enum([...modelKinds], { type: "string", description: "What the model is for." }),
    context_window: Type.Integer({ minimum: 1, description: "Input and output tokens together." }),
    max_output_tokens: Type.Integer({ minimum: 1 }),
    capabilities: Type.Array(Type.Enum(Object.keys(capabilities) as Capability[], { type: "string" })),
    prices: ModelPrices,
    canonical_id: Type.Optional(
      Type.String({ description: "Present if the model has aliases: its id, whichever name you asked for." }),
    ),
    aliases: Type.Optional(
      Type.Array(Type.String(), { description: "Other names that requests may use, if there are any." }),
    ),
    deprecated_at: Type.Optional(instant("Present if the model is to be retired: when to stop using it.")),
    retires_at: Type.Optional(instant("Present if the model is to be retired: when its id stops being served.")),
    replaced_by: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: "Present if the model is to be retired: the id of the model that replaces it, or null.",
      }),
    ),
  },
  { $id: "ModelDetails" },
);

export const MessagesModel = Type.Object(
  {
    type: Type.Literal("model"),
    id: ModelId,
    display_name: Type.String(),
    created_at: Type.String({ format: "date-time" }),
    max_input_tokens: Type.Integer({ minimum: 1, description: "The context window: input and output share it." }),
    max_tokens: Type.Integer({ minimum: 1, description: "The most output tokens." }),
  },
  { $id: "MessagesModel", description: "A model, in the form that Messages clients expect." },
);

export const MessagesModelList = Type.Object(
  {
    data: Type.Array(MessagesModel),
    has_more: Type.Boolean(),
    first_id: Type.Union([Type.String(), Type.Null()]),
    last_id: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: "MessagesModelList" },
);

const UsageWindow = Type.Object(
  {
    usage_percent: Type.Number({ minimum: 0, maximum: 100, description: "Percentage of the window used." }),
    reset_at: instant("When the window ends."),
  },
  { $id: "UsageWindow" },
);

const ownWindows = {
  session: Type.Optional(UsageWindow),
  week: Type.Optional(UsageWindow),
  month: Type.Optional(UsageWindow),
  requests_per_minute: Type.Optional(UsageWindow),
  tokens_per_minute: Type.Optional(UsageWindow),
};

const OwnWindows = Type.Object(ownWindows);
export type OwnWindows = Type.Static<typeof OwnWindows>;

const models = Type.Optional(
  Type.Record(Type.String(), OwnWindows, {
    description: "By a model's id or `prefix/*`: the windows of limits for those.",
  }),
);

export const BudgetWindows = Type.Object(
  { ...ownWindows, models },
  {
    $id: "BudgetWindows",
    description:
      "The windows in which a key, a person or a team has a limit of its own. Those of a minute slide, and are reset when nothing of the last 60 seconds counts any more.",
  },
);
export type BudgetWindows = Type.Static<typeof BudgetWindows>;

export const UsageRecord = Type.Object(
  {
    object: Type.Literal("service.usage"),
    session: UsageWindow,
    week: UsageWindow,
    month: UsageWindow,
    models,
    key: Type.Optional(BudgetWindows),
    person: Type.Optional(BudgetWindows),
    team: Type.Optional(BudgetWindows),
  },
  {
    $id: "UsageRecord",
    description:
      "The five-hour session, the week, and the billing month of the organization; and those of the calling key, of the person whose it is, and of its team, if they have limits of their own.",
  },
);

export const Liveness = Type.Object({ status: Type.Literal("ok") }, { $id: "Liveness" });

export const Readiness = Type.Object(
  {
    status: Type.Enum(["ready", "not_ready"], { type: "string" }),
    checks: Type.Unsafe<Record<string, string>>({
      type: "object",
      additionalProperties: { type: "string" },
      description: "By name: `ok`, or what is wrong. Without `verbose`, only failed checks are listed.",
    }),
    configuration: Type.Optional(
      Type.String({
        description: "With `verbose`: a hash of the configuration in force. Nodes that serve the same have the same.",
      }),
    ),
  },
  { $id: "Readiness" },
);
