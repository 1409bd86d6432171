/** The error envelope of OpenAI's protocols. Responses has one type more than chat completions. */
import Type from "typebox";
import { clientFaultCodes, faultCatalogue } from "../../inference/fault.ts";
import { count, Money, nullable, oneOf } from "../shapes/contract.ts";

const faultTypes = Object.values(faultCatalogue).map((entry) => entry.type);

/**
 * The members of a `context_length_exceeded` error that give the lengths of the input and of the context. In Messages
 * they are in the error's details.
 */
export const tooLong = {
  context_tokens_by: Type.Optional(
    oneOf(["engine", "catalog"], {
      description: "With `context_length_exceeded`: who gave the length of the context.",
    }),
  ),
  input_tokens_by: Type.Optional(
    oneOf(["engine", "service"], { description: "With `context_length_exceeded`: who counted the input." }),
  ),
};

/**
 * The schema of an error envelope. `types`: the protocol's own error types, in addition to the types of all faults.
 * `param`: an example of a path.
 */
export function openaiError($id: string, { types = [], param }: { types?: string[]; param: string }) {
  return Type.Object(
    {
      error: Type.Object({
        message: Type.String({ minLength: 1, description: "What is wrong, and what to do about it." }),
        type: Type.Enum([...new Set([...faultTypes, ...types])], { type: "string" }),
        param: nullable(Type.String({ description: `Path of the first offending field, such as \`${param}\`.` })),
        code: nullable(Type.Enum(clientFaultCodes, { type: "string" })),
        request_id: Type.String({ pattern: "^req_[0-9a-f]{32}$", description: "Equals `x-service-request-id`." }),
        window: Type.Optional(
          oneOf(["session", "week", "month"], {
            description: "With `usage_limit_reached`, if a reset helps: the window that is full.",
          }),
        ),
        reset_at: Type.Optional(Type.String({ description: "ISO 8601 UTC, milliseconds." })),
        resets_at: Type.Optional(Type.Integer({ description: "The same, in Unix seconds." })),
        resets_in_seconds: Type.Optional(count()),
        limit: Type.Optional(
          oneOf(["session", "week", "month", "tokens_per_minute"], {
            description:
              "With `usage_limit_reached`, if the request alone is above a whole limit, and can never pass: that limit. Then there is no `window`, and nothing of a reset.",
          }),
        ),
        limit_value: Type.Optional(
          Type.Union([Money, Type.Integer({ minimum: 1 })], {
            description: "How large that limit is: money, or tokens a minute.",
          }),
        ),
        needed: Type.Optional(
          Type.Union([Money, Type.Integer({ minimum: 1 })], {
            description: "What the request needs at least, in the same.",
          }),
        ),
        ...tooLong,
        extra_usage: Type.Optional(Type.Object({ enabled: Type.Boolean(), available: Money })),
        plan_type: Type.Optional(nullable(Type.String())),
        console_url: Type.Optional(
          Type.String({
            description:
              "With a 429 by a limit: the request in the console, where its person can ask for more. Absent where no address of a console is configured.",
          }),
        ),
        limited_by: Type.Optional(
          oneOf(["organization", "team", "person", "key"], {
            description: "With a 429 by a limit: whose limit it was.",
          }),
        ),
        limited_models: Type.Optional(
          Type.String({ description: "With `limited_by`, if the limit is for some models: a model, or `prefix/*`." }),
        ),
      }),
    },
    { $id },
  );
}
export type OpenaiError = Type.Static<ReturnType<typeof openaiError>>;
