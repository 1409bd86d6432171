/**
 * An ORGANIZATION, as the store returns it, with the cap of extra usage in nanos; verbs of management return the cap as
 * money. Pure.
 */
import Type from "typebox";
import { id, instant, version } from "../../core/operations/fields.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { organizationStatuses } from "../../core/store/directory.ts";
import { Calendar } from "./calendar.ts";

const days = (description: string) => nullable(Type.Integer({ minimum: 1, description }));
const calendar = () =>
  nullable(
    Type.Object(Calendar.properties, {
      description: "By which weeks and months begin, in the place of the anchor. Null: by the anchor.",
    }),
  );

export const organizationFields = {
  id: id("org"),
  slug: Type.String({ pattern: "^[a-z0-9-]{1,63}$", examples: ["acme"] }),
  former_slugs: Type.Array(Type.String(), {
    description: "Those that it had before. None is ever another's.",
    examples: [[]],
  }),
  name: Type.String({ examples: ["Acme, Inc."] }),
  status: oneOf([...organizationStatuses], { description: "One that is closed stays closed." }),
  plan: nullable(Type.String({ description: "Null: inference is refused.", examples: ["pro"] })),
  anchor_at: instant("Where weeks and months are counted from."),
  next_anchor: nullable(
    Type.Object({ anchor_at: instant("A new anchor."), counts_from: instant("When it begins to count.") }),
  ),
  calendar: calendar(),
  next_calendar: nullable(
    Type.Object({ calendar: calendar(), counts_from: instant("When months begin to be counted by it.") }),
  ),
  key_lifetime_max_days: days("How long a key works from when it is made or rotated. Null: no limit."),
  key_unused_max_days: days("How long a key works from its last use. Null: no limit."),
  keeps_content: Type.Boolean({
    description: "False: no text of a request or an answer is stored.",
    examples: [true],
  }),
  created_at: instant("When it was created."),
  closed_at: nullable(instant("When it was closed.")),
  version: version(),
};

const Stored = Type.Object({
  ...organizationFields,
  extra_usage: Type.Object({ enabled: Type.Boolean(), cap_nanos: nullable(Type.Integer({ minimum: 0 })) }),
});
export type Organization = Value<typeof Stored>;

/** The rules of an organization for its keys and for stored content. */
export type Policies = Pick<Organization, "keyLifetimeMaxDays" | "keyUnusedMaxDays" | "keepsContent">;
