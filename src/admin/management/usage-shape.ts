/** The usage of an organization, and what the check of the ledger finds, as verbs of management return them. */
import Type from "typebox";
import { count, Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import { id, instant, limit } from "../store/shapes.ts";
import { Window } from "./standing.ts";

export const OrganizationUsage = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    plan: nullable(Type.String()),
    at: instant("When this was read."),
    session: Window,
    week: Window,
    month: Window,
    extra_usage: Type.Object({ enabled: Type.Boolean(), cap: nullable(Money), used: Money, held: Money }),
    running_requests: count(),
    concurrent_requests: limit(),
  },
  { $id: "OrganizationUsage" },
);
export type OrganizationUsage = Value<typeof OrganizationUsage>;

const compared = () => Type.Union([Money, Type.Integer()], { description: "Money, or a number of things." });

export const Difference = Type.Object({
  organization_id: nullable(Type.String()),
  organization: nullable(Type.String()),
  subject_id: nullable(Type.String({ description: "UUID of its key or team; null: its own total." })),
  window: oneOf([...windowKinds, "extra", "running", "hour", "day", "total", "pass", "chain"]),
  starts_at: nullable(instant("When the window began, or the entry of the audit log was written.")),
  audit_entry: nullable(
    Type.Integer({
      minimum: 1,
      description:
        "Of `pass`: the entry of the audit log that says otherwise. Of `chain`: one at or behind which it is broken.",
    }),
  ),
  used: compared(),
  recorded: compared(),
  held: compared(),
  holding: compared(),
});
export type Difference = Value<typeof Difference>;
