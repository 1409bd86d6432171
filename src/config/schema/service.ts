/** What sluice.yaml says of the service itself, beside engines, models and plans. */
import Type, { type Static } from "typebox";
import {
  meteringLimits,
  metricsLimits,
  responsesLimits,
  serverLimits,
  serviceLimits,
  telemetryLimits,
} from "../limits.ts";
import { workers_max } from "../workers.ts";
import { closed, headers, limited, limitedSeconds, whole } from "./values.ts";

export const Metering = Type.Object(
  {
    lease_s: limitedSeconds(meteringLimits.lease_s),
    checkpoint_s: limitedSeconds(meteringLimits.checkpoint_s),
    sweep_s: limitedSeconds(meteringLimits.sweep_s),
    unstreamed_tokens_max: limited(meteringLimits.unstreamed_tokens_max),
    recovery: Type.Optional(
      Type.Enum(["checkpoint", "hold"], {
        type: "string",
        default: "checkpoint",
        description:
          "What a stream is charged if its node dies: its last checkpoint, or everything that was held for it. What nobody streams is charged nothing.",
      }),
    ),
    end_revoked: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          "Whether running requests end with an error when their key is revoked, or their organization is suspended or loses its plan.",
      }),
    ),
  },
  { ...closed, description: "How usage is kept exact." },
);
export type Metering = Static<typeof Metering>;

export const limits = Type.Object(
  {
    body_bytes_max: limited(serviceLimits.body_bytes_max),
    body_read_ms: limited(serviceLimits.body_read_ms),
    body_depth_max: limited(serviceLimits.body_depth_max),
    body_values_max: limited(serviceLimits.body_values_max),
    body_members_max: limited(serviceLimits.body_members_max),
    body_names_max: limited(serviceLimits.body_names_max),
    body_ratio_max: limited(serviceLimits.body_ratio_max),
    memory_bytes: limited(serviceLimits.memory_bytes),
    in_flight_bytes_max: limited(serviceLimits.in_flight_bytes_max),
    key_in_flight_bytes_max: limited(serviceLimits.key_in_flight_bytes_max),
    failed_authentications_per_minute: limited(serviceLimits.failed_authentications_per_minute),
    idle_ms: limited(serviceLimits.idle_ms),
    grant_ms: limited(serviceLimits.grant_ms),
    first_event_hold_ms: limited(serviceLimits.first_event_hold_ms),
    heartbeat_ms: limited(serviceLimits.heartbeat_ms),
    drain_delay_ms: limited(serviceLimits.drain_delay_ms),
    drain_ms: limited(serviceLimits.drain_ms),
  },
  { ...closed, description: "Limits on requests and connections." },
);

export const messages = Type.Object(
  {
    keep_billing_line: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          "Keep the line (x-anthropic-billing-header) that Claude Code puts at the start of its system text. It changes with each request, so an engine's prefix cache misses everything after it.",
      }),
    ),
  },
  { ...closed, description: "Settings of the Messages protocol." },
);

export const responses = Type.Object(
  {
    store: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          "Store responses unless their request has store: false. If this is false, previous_response_id and item_reference find nothing.",
      }),
    ),
    kept_days: limited(responsesLimits.kept_days),
    organization_bytes_max: limited(responsesLimits.organization_bytes_max),
  },
  { ...closed, description: "Settings of the Responses protocol, and what it stores in the database." },
);

export const reload = Type.Object(
  {
    force: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          "Let a reload take away a plan that organizations are on; their inference is answered 402 from then on.",
      }),
    ),
  },
  { ...closed, description: "How a new file comes into force." },
);

export const log = Type.Object(
  {
    level: Type.Optional(
      Type.Enum(["debug", "info", "warn", "error"], {
        type: "string",
        default: "info",
        description: "The least severe lines that are written. Requests are info, failed ones error, and probes debug.",
      }),
    ),
    format: Type.Optional(
      Type.Enum(["json", "logfmt"], { type: "string", default: "json", description: "How a line is written." }),
    ),
  },
  { ...closed, description: "What the log has." },
);

export const metrics = Type.Object(
  {
    organizations_max: limited(metricsLimits.organizations_max),
  },
  { ...closed, description: "What the metrics have." },
);

export const telemetry = Type.Object(
  {
    endpoint: Type.String({
      maxLength: 2048,
      pattern: "^https?://[^\\s@?#]+$",
      patternErrorMessage: "must be an http or https URL without user name, query or fragment",
      description: "The base URL at which a collector takes OTLP over HTTP, such as http://localhost:4318.",
    }),
    headers: Type.Optional(headers("Headers of every request to the collector.")),
    service_name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, default: "sluice", description: "The name of the service." }),
    ),
    sample_ratio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, default: 0.01, description: "The share of requests that is traced." }),
    ),
    follow_callers: Type.Optional(
      Type.Boolean({
        default: true,
        description: "Whether a caller's traceparent decides in place of sample_ratio whether its request is traced.",
      }),
    ),
    metrics_ms: limited(telemetryLimits.metrics_ms),
  },
  { ...closed, description: "OpenTelemetry: traces and metrics of inference, sent to a collector by OTLP." },
);

export const reports = Type.Object(
  {
    currency: Type.String({
      pattern: "^[A-Z]{3}$",
      patternErrorMessage: "must be a currency of ISO 4217, such as EUR",
      description: "The currency of costs in reports, as ISO 4217 names it.",
    }),
    price_per_million_units: Type.Number({
      minimum: 0,
      maximum: 1_000_000,
      description: "What a million units cost, with nine decimals at most.",
    }),
    provider: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        patternErrorMessage: "must be text on one line",
        default: "Sluice",
        description: "Who bills, in FOCUS reports.",
      }),
    ),
  },
  { ...closed, description: "What units cost in reports. Nothing else depends on it." },
);

export const images = Type.Object(
  {
    deny_private: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Refuse URLs of images that lead to addresses or names of private networks.",
      }),
    ),
    denied_hosts: Type.Optional(
      Type.Array(
        Type.String({
          pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$",
          patternErrorMessage: "must be the name of a host, such as example.com, or an IPv4 address",
        }),
        {
          maxItems: 1000,
          uniqueItems: true,
          default: [],
          description: "Hosts from which no image may come, each with all below it.",
        },
      ),
    ),
  },
  { ...closed, description: "Which images an engine may be asked to fetch." },
);

export const webhooks = Type.Object(
  {
    allow_private: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          "Let webhooks of organizations lead to this machine, its link and private networks, and use plain HTTP.",
      }),
    ),
  },
  { ...closed, description: "Where notices may be sent." },
);

export const server = Type.Object(
  {
    workers: Type.Optional(
      Type.Union([whole(1, workers_max, "So many."), Type.Enum(["auto"], { type: "string" })], {
        default: 1,
        description:
          "How many processes serve: a number, or auto for as many as there are cores and memory for. More than one need Postgres and Redis.",
      }),
    ),
    warm_up_ms: limited(serverLimits.warm_up_ms),
  },
  { ...closed, description: "The node itself. Applies at the next start." },
);
