/** Response headers by name, as the contract describes them: docs/design/service.md, Identifiers and headers. */
import { unifiedOverage } from "../../core/operations/headers.ts";

interface Header {
  description: string;
  schema: Record<string, unknown>;
  required?: boolean;
}

const requestId = { type: "string", pattern: "^req_[0-9a-f]{32}$" };
const percent = { type: "number", minimum: 0, maximum: 100 };
const instant = {
  type: "string",
  format: "date-time",
  pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
};
const seconds = { type: "integer", minimum: 0 };
const asAdmitted = "when this request was admitted, without this request";
const onRefusal = "On a 429, present if a window or the number of concurrent requests is the reason.";

const usage = (window: string): Record<string, Header> => ({
  [`x-service-usage-${window}-percent`]: {
    description: `Percentage of the ${window} window that is used, ${asAdmitted}. At most two decimals. ${onRefusal}`,
    schema: percent,
  },
  [`x-service-usage-${window}-reset-at`]: {
    description: `When the ${window} window ends (ISO 8601, UTC, milliseconds), ${asAdmitted}. ${onRefusal}`,
    schema: instant,
  },
});

type Limited = "requests" | "tokens";

/**
 * The headers of a limit per minute, whose names differ by protocol. `reset`: the header that says when the limit is
 * fully available again.
 */
const limitHeaders = (what: Limited, nameOf: (field: string) => string, reset: Header): Record<string, Header> => ({
  [nameOf("limit")]: {
    description: `The plan's limit of ${what} per minute. Absent if there is none. On a 429, present if a limit per minute is the reason.`,
    schema: { type: "integer", minimum: 1 },
  },
  [nameOf("remaining")]: {
    description: `How many ${what} of this limit are left.`,
    schema: { type: "integer", minimum: 0 },
  },
  [nameOf("reset")]: reset,
});

const rateLimit = (what: Limited) =>
  limitHeaders(what, (field) => `x-ratelimit-${field}-${what}`, {
    description: `How long until the limit of ${what} is fully available again, such as \`12.5s\`.`,
    schema: { type: "string" },
  });

const messagesRateLimit = (what: Limited) =>
  limitHeaders(what, (field) => `anthropic-ratelimit-${what}-${field}`, {
    description: `When the limit of ${what} is fully available again (ISO 8601, UTC).`,
    schema: { type: "string", format: "date-time" },
  });

export const headers: Record<string, Header> = {
  "x-service-request-id": {
    description: "The id of this request. Quote it when you ask for help.",
    schema: requestId,
    required: true,
  },
  "x-request-id": { description: "The same id, in the header that OpenAI's clients read.", schema: requestId },
  "request-id": { description: "The same id, in the header that Anthropic's clients read.", schema: requestId },
  ...usage("session"),
  ...usage("week"),
  ...usage("month"),
  "x-service-replay-of": {
    description: "The request whose answer this is, because it came with the same `idempotency-key` before.",
    schema: requestId,
  },
  "x-service-usage-source": {
    description: "What this request is charged to: the plan, or extra usage.",
    schema: { type: "string", enum: ["plan", "extra"] },
  },
  ...rateLimit("requests"),
  ...rateLimit("tokens"),
  ...messagesRateLimit("requests"),
  ...messagesRateLimit("tokens"),
  "anthropic-ratelimit-unified-status": {
    description:
      "`rejected` with `usage_limit_reached`: clients stop, and do not retry. Of answers to sign-ins: `allowed`, and `allowed_warning` from 75 percent.",
    schema: { type: "string", enum: ["allowed", "allowed_warning", "rejected"] },
  },
  ...Object.fromEntries(
    ["representative-claim", "overage-status", ...unifiedOverage.map((one) => `overage-${one}`)].map((name) => [
      `anthropic-ratelimit-unified-${name}`,
      { description: "Of the fullest limit, for Claude Code that is signed in here.", schema: { type: "string" } },
    ]),
  ),
  "anthropic-ratelimit-unified-reset": {
    description:
      "When that window ends, in Unix seconds. Absent for a request above a whole limit, which no reset helps.",
    schema: { type: "integer", minimum: 0 },
  },
  "x-codex-promo-message": {
    description: "With `usage_limit_reached`: the message again, where Codex looks for one to show.",
    schema: { type: "string" },
  },
  deprecation: {
    description:
      "Present if the model that was asked for is to be retired, or is answered by its replacement: since when, or from when on, it should not be used (RFC 9745), such as `@1767139200`.",
    schema: { type: "string", pattern: "^@-?\\d+$" },
  },
  sunset: {
    description: "Beside `deprecation`: when the model's id stops being served (RFC 8594).",
    schema: { type: "string" },
  },
  link: {
    description: 'Beside `deprecation`, if another model replaces this one: its path, with `rel="successor-version"`.',
    schema: { type: "string" },
  },
  "retry-after": {
    description:
      "How many seconds to wait before you try again. On every 503, and on a 429 that at most a minute's wait mends; `resets_in_seconds` in the body says it of a longer one.",
    schema: seconds,
  },
  "x-should-retry": {
    description:
      "`false` if the same request cannot succeed within a minute: on every 4xx except 429, and on a 429 that needs a longer wait or another request. Absent otherwise.",
    schema: { type: "string", const: "false" },
  },
  allow: { description: "The methods that this path supports.", schema: { type: "string" } },
  "www-authenticate": { description: "Always `Bearer`.", schema: { type: "string", const: "Bearer" } },
};
