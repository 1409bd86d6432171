/** Teams and limits as the management interface takes and answers them; budget-records.ts makes the values. */
import Type from "typebox";
import { count, instant, nullable } from "../../protocol/shapes/contract.ts";
import { units_max } from "../../store/ledger.ts";
import { id, keyFields, limitFields, version } from "./shapes.ts";

const LimitsRecord = Type.Object(limitFields(), { $id: "Limits", description: "In the units of a plan." });

/** What is left out stays. */
export function limitChanges(description: string) {
  const amount = () => Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: units_max })));
  return Type.Object(
    {
      session: amount(),
      week: amount(),
      month: amount(),
      requests_per_minute: amount(),
      tokens_per_minute: amount(),
      concurrent_requests: amount(),
    },
    { description },
  );
}

export const TeamRecord = Type.Object(
  {
    id: id("team"),
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    name: Type.String({ description: "Unique in its organization." }),
    keys: count(),
    limits: LimitsRecord,
    key_limits: nullable(LimitsRecord),
    created_at: instant("When it was created."),
    version: version(),
  },
  { $id: "Team" },
);

export const BudgetedKeyRecord = Type.Object(
  {
    ...keyFields,
    team: nullable(Type.Object({ id: id("team"), name: Type.String() })),
    limits: LimitsRecord,
  },
  { $id: "BudgetedKey" },
);

export const KeyDefaultRecord = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    limits: nullable(LimitsRecord),
    version: Type.Integer({ minimum: 1, description: "That of the organization; also sent as `etag`." }),
  },
  { $id: "KeyDefault", description: "What a new key of the organization gets, unless its team says otherwise." },
);
