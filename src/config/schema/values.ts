/** The kinds of values that several parts of sluice.yaml have. */
import Type, { type TSchema } from "typebox";
import type { Limit } from "../limits.ts";

export const closed = { additionalProperties: false } as const;

const namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$";
const nameWords = "must be a name: letters, digits, '.', '_' and '-', at most 63, starting with a letter or digit";

/** A mapping from names that the operator chooses. */
export function named<Value extends TSchema>(value: Value, options: { maxProperties: number; description: string }) {
  const key = Type.String({ pattern: namePattern });
  return Type.Record(key, value, { ...closed, ...options, "x-key": nameWords });
}

export function whole(minimum: number, maximum: number, description: string, fallback?: number) {
  return Type.Integer({ minimum, maximum, description, ...(fallback === undefined ? {} : { default: fallback }) });
}

export const limited = ({ minimum, maximum, description, default: fallback }: Limit) =>
  Type.Optional(whole(minimum, maximum, description, fallback));
export const limitedSeconds = ({ minimum, maximum, description, default: fallback }: Limit) =>
  Type.Optional(Type.Number({ minimum, maximum, description, default: fallback }));

export const path = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description }));

export const ownConcurrent = Type.Optional(
  whole(
    1,
    1_000_000,
    "How many requests each process of Sluice may have at the engine at once. Further ones wait, fairly by organization. With several processes, divide what the engine can do among them. Default: no limit.",
  ),
);
export const ownTokens = Type.Optional(
  whole(
    1,
    1_000_000_000,
    "How many tokens those requests may have together: their inputs, and at most 1,024 for each answer. Per process too. Default: no limit.",
  ),
);

export const headers = (description: string) =>
  Type.Record(
    Type.String({ pattern: "^[A-Za-z][A-Za-z0-9-]{0,63}$" }),
    Type.String({
      maxLength: 4096,
      writeOnly: true,
      pattern: "^[\\x20-\\x7e]*$",
      patternErrorMessage: "must be text that a header can carry: ASCII, without line breaks",
    }),
    {
      ...closed,
      maxProperties: 32,
      description,
      "x-key": "must be the name of a header: letters, digits and '-', at most 64",
    },
  );
