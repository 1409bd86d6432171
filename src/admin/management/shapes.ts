/** The schemas that describe the inputs and answers of the verbs of management. Pure. */
import type { TSchema } from "typebox";
import Type from "typebox";
import { plainPattern } from "../../core/inference/plain-text.ts";
import type { Role } from "../../features/identity/store/operators.ts";
import type { CallerRole } from "./caller.ts";
import * as parse from "./parse.ts";

const text = (chars_max: number, mustBe: string) => (description: string) =>
  Type.String({ minLength: 1, maxLength: chars_max, pattern: plainPattern, description, "x-must-be": mustBe });

/** The schema of text on one line. */
export const words = text(1000, "one line of 1 to 1000 characters");
/** One item of a list: the ID of a model, an address or a network. */
export const entry = () =>
  Type.String({ minLength: 1, pattern: plainPattern, "x-must-be": "one line of at least one character" });
/** A name that somebody chooses for a thing. */
export const name = text(200, "one line of 1 to 200 characters");

/** The pattern of models to which a limit applies: the ID of a model, or `prefix/*`. */
export const modelPattern = text(256, "one line of 1 to 256 characters")("A model, or `prefix/*`.");

/** The schema of a message from one person to another, on one line. */
export const message = (chars_max: number) => text(chars_max, `one line of 1 to ${chars_max} characters`);

/** Text that matches a pattern, which `mustBe` describes. */
export const formed = (pattern: RegExp, mustBe: string, description: string) =>
  Type.String({ pattern: pattern.source, description, "x-must-be": mustBe });

export const queryFlag = (description: string) =>
  Type.Optional(Type.Boolean({ description, "x-must-be": "'true' or 'false'" }));

/** The member of an input that names the organization. */
export const oneOrganization = { organization: words("Slug or ID.") };

export const slug = (description: string) =>
  formed(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "a slug: 1 to 63 lowercase letters, digits, and hyphens, with a letter or digit at both ends",
    description,
  );

/** The schema of an instant as people write it: with a time zone, or a date in UTC. */
export const moment = (description: string) =>
  Type.Codec(
    formed(
      parse.instantForm,
      "an instant in ISO 8601 with a time zone, such as 2030-01-31T12:00:00Z, or a date (UTC)",
      description,
    ),
  )
    .Decode(parse.instant)
    .Encode((at) => at.toISOString());

/** A duration such as `30m` or `7d`, decoded to milliseconds. */
export const duration = (description: string) =>
  Type.Codec(formed(/^[0-9]{1,9}[smhd]$/, "a duration such as 30m, 1h, or 7d, up to 365d, or 0s for none", description))
    .Decode(parse.duration)
    .Encode((ms) => `${Math.round(ms / 1000)}s`);

/** The schema of a page of a list, with the cursor of the next page. */
export function partOf<Item extends TSchema>(item: Item, $id: string) {
  return Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Type.Union([Type.String(), Type.Null()], { description: "Null: this was the last page." }),
    },
    { $id },
  );
}

export const page_max = 1000;
const page_default = 100;

/**
 * The members of an input that page a list: the size of the page, and the cursor. In a list that is sorted by id, the
 * cursor is the last id of the previous page.
 */
export function part(cursorForm: RegExp) {
  return {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: page_max,
        description: `How many at most; ${page_default} if absent.`,
        "x-must-be": `a whole number from 1 to ${page_max}`,
      }),
    ),
    cursor: Type.Optional(
      formed(cursorForm, "the `next_cursor` of the part before", "`next_cursor` of the previous page."),
    ),
  };
}
export const partOfIds = (prefix: string) => part(new RegExp(`^${prefix}_[0-9a-f]{32}$`));
export const partOfNumbers = () => part(/^[0-9]{1,15}$/);

export function limitIn({ limit }: { limit?: number | undefined }): number {
  return limit ?? page_default;
}

/** The ids and other values that the examples in the contract use. */
export const examples = {
  organization: `org_${"0".repeat(31)}1`,
  key: `key_${"0".repeat(31)}2`,
  operator: `op_${"0".repeat(31)}3`,
  request: `req_${"0".repeat(31)}4`,
  team: `team_${"0".repeat(31)}5`,
  at: new Date("2026-11-21T03:00:00.000Z"),
  hash: "0123456789abcdef".repeat(4),
};

/** The roles that may read the data of an organization. */
export const readers = ["admin", "viewer", "organization-admin"] as const satisfies readonly Role[];
/** The roles `readers`, and `member` for their own data. */
export const owners = [...readers, "member"] as const satisfies readonly CallerRole[];
/** The roles that may change the data of an organization. */
export const managers = ["admin", "organization-admin"] as const satisfies readonly Role[];
/** The roles `managers`, and `member` for their own data. */
export const keepers = [...managers, "member"] as const satisfies readonly CallerRole[];
export const admins = ["admin"] as const satisfies readonly Role[];
