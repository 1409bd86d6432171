/** The schemas of fields that stored things share: ids, versions, instants, and secrets. Pure. */
import Type from "typebox";
import { instant as instantText, nullable } from "../protocol/shapes/contract.ts";
import type { Value } from "../schema/codec.ts";

const kinds = ["org", "key", "op", "req", "team", "per", "dest", "lreq", "inv"] as const;

/** The schema of an id: a prefix that tells the kind of thing, and a UUIDv7 in hexadecimal digits. */
export const id = (prefix: (typeof kinds)[number]) =>
  Type.String({
    pattern: `^${prefix}_[0-9a-f]{32}$`,
    examples: [`${prefix}_${"0".repeat(31)}${kinds.indexOf(prefix) + 1}`],
  });
export const version = () => Type.Integer({ minimum: 1, description: "Rises with each change; also sent as `etag`." });

/** The schema of an instant: text in answers, a Date in the program. */
export const instant = (description: string) =>
  Type.Codec(instantText(description))
    .Decode((written) => new Date(written))
    .Encode((at) => at.toISOString());

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

/**
 * A CREDENTIAL: the fields that a key and an operator have in common: the owner, how long it is valid, when and from
 * where it was last used, and its secrets.
 */
export const credentialFields = {
  created_by: Type.String({
    description: "`operator:<name>`, `person:<id>`, `cli:<user>` or `service`.",
    examples: ["cli:root"],
  }),
  created_at: instant("When it was created."),
  expires_at: nullable(instant("When it expires.")),
  revoked_at: nullable(instant("When it was revoked.")),
  last_used_at: nullable(instant("When it was last used, about.")),
  last_used_from: nullable(Type.String({ description: "An address; of a key and IPv6, its /64." })),
  secrets: Type.Array(Secret, { description: "Newest first." }),
};
const Credential = Type.Object(credentialFields);
export type Credential = Value<typeof Credential>;
