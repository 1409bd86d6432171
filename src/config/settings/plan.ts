/** The settings of a plan. */

import { limit_max } from "../../admin/store/amounts.ts";
import { nano_decimals } from "../../core/inference/money.ts";
import { amount, group, type Written, whole } from "./row.ts";

const money = (window: string) =>
  amount({ minimum: 1e-9, maximum: limit_max, decimals: nano_decimals }, `Money for ${window}.`);

export const Plan = group(
  {
    session: money("a session of five hours"),
    week: money("a week"),
    month: money("a billing month"),
    requests_per_minute: whole({ minimum: 1, maximum: 1_000_000_000 }, "Requests in any 60 seconds."),
    tokens_per_minute: whole({ minimum: 1, maximum: 1_000_000_000_000 }, "Tokens in any 60 seconds."),
    concurrent_requests: whole({ minimum: 1, maximum: 1_000_000 }, "Requests that run at the same time."),
    queue_weight: whole(
      { minimum: 1, maximum: 1000, default: 1 },
      "The share of a full engine, relative to others that wait. Each node takes it from its own file.",
    ),
    queue_priority: whole(
      { minimum: 0, maximum: 9, default: 0 },
      "When requests wait for a full engine, lower goes before all higher ones. Each node takes it from its own file.",
    ),
  },
  "What an organization may use. A limit that you leave out does not limit.",
);
export type PlanEntry = Written<typeof Plan.properties>;
