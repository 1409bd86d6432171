/** The schemas of the fields of things that are kept. A thing has one schema: the store returns it, and verbs answer it. Pure. */
import type { TSchema } from "typebox";
import Type from "typebox";
import { instant as instantText, nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";

const kinds = ["org", "key", "op", "req", "team", "per"] as const;

/** An ID: a prefix that says of what, and a UUIDv7 in hexadecimal digits. */
export const id = (prefix: (typeof kinds)[number]) =>
  Type.String({
    pattern: `^${prefix}_[0-9a-f]{32}$`,
    examples: [`${prefix}_${"0".repeat(31)}${kinds.indexOf(prefix) + 1}`],
  });
export const version = () => Type.Integer({ minimum: 1, description: "Rises with each change; also sent as `etag`." });

/** An instant as answers write it, and a Date in the program. */
export const instant = (description: string) =>
  Type.Codec(instantText(description))
    .Decode((written) => new Date(written))
    .Encode((at) => at.toISOString());

export const limit = () => nullable(Type.Integer({ minimum: 0, description: "Null: no limit." }));
export const limitNames = [
  "session",
  "week",
  "month",
  "requests_per_minute",
  "tokens_per_minute",
  "concurrent_requests",
] as const;
export type LimitName = (typeof limitNames)[number];
export const eachLimit = <Schema extends TSchema>(schema: () => Schema) =>
  Object.fromEntries(limitNames.map((name) => [name, schema()])) as Record<LimitName, Schema>;

/** The limits of a plan, a key or a team. */
export const limitFields = eachLimit(limit);
export const Limits = Type.Object(limitFields, {
  $id: "Limits",
  description: "Those of windows in billionths of the currency.",
});

/** One secret of a key or an operator, as it may be shown. */
export const Secret = Type.Object(
  {
    prefix: Type.String({ description: "The first 8 characters.", examples: ["slk_3fJk"] }),
    suffix: Type.String({ description: "The last 4 characters.", examples: ["x7Qd"] }),
    created_at: instant("When it was made."),
    expires_at: nullable(instant("When a rotation's grace ends.")),
    revoked_at: nullable(instant("When it was revoked.")),
  },
  { $id: "Secret", description: "One secret, as it may be shown." },
);
export type Secret = Value<typeof Secret>;

/** The life of a key or an operator. */
export const life = {
  created_at: instant("When it was created."),
  expires_at: nullable(instant("When it expires.")),
  revoked_at: nullable(instant("When it was revoked.")),
  last_used_at: nullable(instant("When it was last used, about.")),
};
