/** A plan of sluice.yaml. */
import Type, { type Static } from "typebox";
import { units_max } from "../../store/ledger.ts";
import { closed, whole } from "./values.ts";

const units = (window: string) => Type.Optional(whole(1, units_max, `Micro-units in ${window}.`));

export const Plan = Type.Object(
  {
    session: units("a session of five hours"),
    week: units("a week"),
    month: units("a billing month"),
    requests_per_minute: Type.Optional(whole(1, 1_000_000_000, "Requests in any 60 seconds.")),
    tokens_per_minute: Type.Optional(whole(1, 1_000_000_000_000, "Tokens in any 60 seconds.")),
    concurrent_requests: Type.Optional(whole(1, 1_000_000, "Requests at the same time.")),
    queue_weight: Type.Optional(
      whole(1, 1000, "Its organizations' share of tokens, beside others that wait for a full engine.", 1),
    ),
    queue_priority: Type.Optional(
      whole(0, 9, "Where requests wait for a full engine, a lower number goes before all of a higher one.", 0),
    ),
  },
  { ...closed, description: "What an organization may use. Without a limit, usage is unlimited." },
);
export type PlanEntry = Static<typeof Plan>;
