/**
 * sluice.yaml as one typebox value: validation, static type, and the JSON Schema that editors complete from
 * (sluice.schema.json). Names of fields never change: docs/design/service.md, The catalog.
 *
 * Two annotations steer the reader's words: `patternErrorMessage` says a pattern in human words (editors show it too),
 * and `writeOnly` marks what must never be shown.
 */
import Type, { type Static, type TSchema } from "typebox";
import { units_max } from "../store/ledger.ts";
import { tokenizerNames } from "../tokens/tokenizers.ts";
import { upstreamProtocols } from "../upstream/codecs.ts";
import { addressFamilies, type UpstreamTimeouts } from "../upstream/target.ts";
import {
  checkLimits,
  type Limit,
  loadLimits,
  meteringLimits,
  metricsLimits,
  queueLimits,
  resolveLimits,
  responsesLimits,
  serviceLimits,
  telemetryLimits,
  upstreamTimeouts,
} from "./limits.ts";
import { workers_max } from "./workers.ts";

const closed = { additionalProperties: false } as const;

const context_tokens_max = 100_000_000;
/** So that a whole context at this price is still an exact number. */
const price_max = units_max / context_tokens_max;

const namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$";
const nameWords = "must be a name: letters, digits, '.', '_' and '-', at most 63, starting with a letter or digit";

/** A mapping from names that the operator chooses. */
function named<Value extends TSchema>(value: Value, options: { maxProperties: number; description: string }) {
  const key = Type.String({ pattern: namePattern });
  return Type.Record(key, value, { ...closed, ...options, "x-key": nameWords });
}

function whole(minimum: number, maximum: number, description: string, fallback?: number) {
  return Type.Integer({ minimum, maximum, description, ...(fallback === undefined ? {} : { default: fallback }) });
}

const limited = ({ minimum, maximum, description, default: fallback }: Limit) =>
  Type.Optional(whole(minimum, maximum, description, fallback));
const limitedSeconds = ({ minimum, maximum, description, default: fallback }: Limit) =>
  Type.Optional(Type.Number({ minimum, maximum, description, default: fallback }));

const timeouts = Type.Object(
  {
    connect_ms: limited(upstreamTimeouts.connect_ms),
    first_part_ms: limited(upstreamTimeouts.first_part_ms),
    first_part_spare_ms: limited(upstreamTimeouts.first_part_spare_ms),
    idle_ms: limited(upstreamTimeouts.idle_ms),
    total_ms: limited(upstreamTimeouts.total_ms),
  },
  { ...closed, description: "How long to wait for an engine, in milliseconds." },
);
// A default here would hide what the upstream says.
const modelTimeouts = Type.Object(
  Object.fromEntries(
    Object.entries(upstreamTimeouts).map(([name, { minimum, maximum, description }]) => [
      name,
      Type.Optional(whole(minimum, maximum, description)),
    ]),
  ) as Record<keyof UpstreamTimeouts, ReturnType<typeof limited>>,
  { ...closed, description: "How long its engines are waited for, in place of what their upstreams say." },
);

const path = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description }));

const tls = Type.Object(
  {
    ca_file: path("The authorities that are trusted, in PEM, in place of the system's."),
    certificate_file: path("The certificate that Sluice shows, in PEM."),
    key_file: path("Its private key, in PEM."),
  },
  { ...closed, description: "Whom https trusts, and who Sluice is. Files are read at the start and on SIGHUP." },
);

const headers = (description: string) =>
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

const headerName = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: "^[A-Za-z][A-Za-z0-9-]{0,63}$",
      patternErrorMessage: "must be the name of a header: letters, digits and '-', at most 64",
      description,
    }),
  );

const identityHeaders = Type.Object(
  {
    organization: headerName("The header that has the organization's id."),
    plan: headerName("The header that has the name of its plan."),
  },
  {
    ...closed,
    description:
      "For a scheduler between Sluice and the engines: the headers that say for whom a request is, such as x-llm-d-inference-fairness-id and x-llm-d-inference-objective for llm-d.",
  },
);

const url = (description: string) => Type.String({ minLength: 1, maxLength: 2048, description });

const check = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        pattern: "^/[\\x21-\\x7e]{0,1023}$",
        patternErrorMessage: "must be a path from the root of the engine's host, such as /health",
        default: "/health",
        description:
          "What is asked, from the root of the engine's host. Any status from 200 to 299 says that it is well.",
      }),
    ),
    interval_ms: limited(checkLimits.interval_ms),
  },
  {
    ...closed,
    description: "Ask the engine from time to time whether it is well. While it is not, it gets no requests.",
  },
);

const ownConcurrent = Type.Optional(
  whole(
    1,
    1_000_000,
    "How many requests each process of Sluice may have at the engine at once. Further ones wait, fairly by organization. With several processes, divide what the engine can do among them. Default: no limit.",
  ),
);
const ownTokens = Type.Optional(
  whole(
    1,
    1_000_000_000,
    "How many tokens those requests may have together: their inputs, and at most 1,024 for each answer. Per process too. Default: no limit.",
  ),
);
const queue = Type.Object(
  {
    length_max: limited(queueLimits.length_max),
    wait_ms_max: limited(queueLimits.wait_ms_max),
    reserved_percent: limited(queueLimits.reserved_percent),
  },
  { ...closed, description: "Requests that wait because the engine is full. Per process." },
);

const load = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        pattern: "^/[\\x21-\\x7e]{0,1023}$",
        patternErrorMessage: "must be a path from the root of the engine's host, such as /metrics",
        default: "/metrics",
        description: "Where the engine's metrics are, from the root of its host.",
      }),
    ),
    interval_ms: limited(loadLimits.interval_ms),
    waiting_max: limited(loadLimits.waiting_max),
  },
  {
    ...closed,
    description:
      "Read from the engine's own metrics (vLLM, SGLang, llama.cpp with --metrics) how busy it is. A crowded one gets no new requests while another is not.",
  },
);

const resolve = Type.Object(
  {
    interval_ms: limited(resolveLimits.interval_ms),
    addresses_max: limited(resolveLimits.addresses_max),
    family: Type.Optional(
      Type.Enum([...addressFamilies], {
        type: "string",
        default: "all",
        description:
          "Which addresses are engines. Where each engine has an IPv4 and an IPv6 address, choose one, or each counts twice.",
      }),
    ),
    servers: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        maxItems: 8,
        default: [],
        description:
          "DNS servers to ask, such as 127.0.0.1:8600 for Consul. Default: as the system resolves names, with its hosts file and search domains.",
      }),
    ),
  },
  {
    ...closed,
    description:
      "The name of the URL has several addresses, each of them an engine that serves the same, and they change. Resolve it anew from time to time.",
  },
);

export const Upstream = Type.Object(
  {
    url: url("The engine's base URL, including /v1. If the URL has no path, /v1 is added."),
    replicas: Type.Optional(
      Type.Array(url("The base URL of another engine that serves the same."), {
        maxItems: 63,
        description: "Further engines that are the same: a session stays with one of them.",
      }),
    ),
    resolve: Type.Optional(resolve),
    cache_salt: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          "Send cache_salt, different for each organization, so that none can tell by time what another has in the engine's prefix cache. For vLLM.",
      }),
    ),
    check: Type.Optional(check),
    load: Type.Optional(load),
    concurrent_max: ownConcurrent,
    tokens_in_flight_max: ownTokens,
    queue: Type.Optional(queue),
    protocol: Type.Optional(
      Type.Enum([...upstreamProtocols], {
        type: "string",
        default: "openai-chat",
        description: "The protocol of the engine.",
      }),
    ),
    api_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4096,
        writeOnly: true,
        description: `The key for the engine, from the environment: "\${NAME}".`,
      }),
    ),
    headers: Type.Optional(headers("Headers of every request to the engine.")),
    identity_headers: Type.Optional(identityHeaders),
    tls: Type.Optional(tls),
    timeouts: Type.Optional(timeouts),
  },
  { ...closed, description: "An engine." },
);

const route = Type.Object(
  {
    upstream: Type.String({
      minLength: 1,
      description: "The name of one of the upstreams, or 'simulator' for the built-in engine.",
    }),
    model: Type.String({ minLength: 1, maxLength: 512, description: "The engine's name for the model." }),
    priority: Type.Optional(whole(0, 1000, "Lower is tried first.", 0)),
    weight: Type.Optional(whole(0, 1_000_000, "The share of requests among routes of one priority.", 1)),
    context_window: Type.Optional(
      whole(1, context_tokens_max, "The engine's own context, where it is smaller than the model's."),
    ),
    concurrent_max: ownConcurrent,
    tokens_in_flight_max: ownTokens,
    instructions: Type.Optional(
      Type.Enum(["anywhere", "head"], {
        type: "string",
        default: "anywhere",
        description:
          "Where the engine's chat template accepts system text. 'head' (Mistral, Gemma and similar): later system messages are put into the user's turn and marked as system text.",
      }),
    ),
  },
  { ...closed, description: "One engine that serves the model." },
);

const price = (description: string) => whole(0, price_max, description);

const prices = Type.Object(
  {
    input: price("An input token that was not in a cache."),
    cached_input: Type.Optional(price("An input token read from the engine's cache. Default: the price of input.")),
    cache_write: Type.Optional(price("An input token written to the engine's cache. Default: the price of input.")),
    output: price("An output token, reasoning included."),
  },
  { ...closed, description: "Micro-units per token: whole numbers, 0 for free." },
);

export const capabilities = [
  "tools",
  "parallel_tools",
  "vision",
  "reasoning",
  "structured_output",
  "logprobs",
  "files",
  "audio_input",
] as const;

export const Model = Type.Object(
  {
    id: Type.String({
      minLength: 3,
      maxLength: 256,
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:@+-]*$",
      patternErrorMessage:
        "must be a model id of the form vendor/model_name: letters, digits, '.', '_' and '-', and in the name also ':', '@' and '+'",
      description: "The public id, vendor/model_name.",
    }),
    owned_by: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "The organization that made the model. Default: the vendor of the id.",
      }),
    ),
    created: whole(0, 253_402_300_799, "When the model was made: Unix seconds."),
    context_window: whole(1, context_tokens_max, "The most tokens of input and output together."),
    max_output_tokens: Type.Optional(
      whole(1, context_tokens_max, "The most output tokens of one answer. Default: the context window."),
    ),
    capabilities: Type.Optional(
      Type.Array(Type.Enum([...capabilities], { type: "string" }), {
        maxItems: capabilities.length,
        uniqueItems: true,
        default: [],
        description: "What the model can do. A request that needs more is refused with unsupported_feature.",
      }),
    ),
    prices,
    tokenizer: Type.Optional(
      Type.Enum([...tokenizerNames], {
        type: "string",
        description:
          "The vocabulary and the chat template that count_tokens counts with: o200k_harmony for gpt-oss, llama3 for Llama 3.1 to 3.3 Instruct. Default: estimates.",
      }),
    ),
    extra_params: Type.Optional(
      Type.Array(
        Type.String({
          pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$",
          patternErrorMessage: "must be the name of a field: letters, digits, '_', '.' and '-', at most 128",
        }),
        {
          maxItems: 64,
          uniqueItems: true,
          default: [],
          description:
            "Fields beyond the contract that requests for this model may have. They are forwarded unchanged.",
        },
      ),
    ),
    timeouts: Type.Optional(modelTimeouts),
    routes: Type.Array(route, { minItems: 1, maxItems: 32, description: "The engines that serve the model." }),
  },
  { ...closed, description: "A public model." },
);

const units = (window: string) => Type.Optional(whole(1, units_max, `Micro-units in ${window}.`));

export const Plan = Type.Object(
  {
    session: units("a session of five hours"),
    week: units("a week"),
    month: units("a billing month"),
    requests_per_minute: Type.Optional(whole(1, 1_000_000_000, "Requests in any 60 seconds.")),
    tokens_per_minute: Type.Optional(whole(1, 1_000_000_000_000, "Tokens in any 60 seconds.")),
    concurrent_requests: Type.Optional(whole(1, 1_000_000, "Requests at the same time.")),
    queue_weight: Type.Optional(
      whole(1, 1000, "Its organizations' share of tokens, beside others that wait for a full engine.", 1),
    ),
    queue_priority: Type.Optional(
      whole(0, 9, "Where requests wait for a full engine, a lower number goes before all of a higher one.", 0),
    ),
  },
  { ...closed, description: "What an organization may use. Without a limit, usage is unlimited." },
);

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
          "What a request is charged if its node dies: its last checkpoint, or everything that was held for it.",
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

const limits = Type.Object(
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

const messages = Type.Object(
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

const responses = Type.Object(
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

const reload = Type.Object(
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

const log = Type.Object(
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

const metrics = Type.Object(
  {
    organizations_max: limited(metricsLimits.organizations_max),
  },
  { ...closed, description: "What the metrics have." },
);

const telemetry = Type.Object(
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

const reports = Type.Object(
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

const images = Type.Object(
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

const webhooks = Type.Object(
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

const server = Type.Object(
  {
    workers: Type.Optional(
      Type.Union([whole(1, workers_max, "So many."), Type.Enum(["auto"], { type: "string" })], {
        default: 1,
        description:
          "How many processes serve: a number, or auto for as many as there are cores and memory for. More than one need Postgres and Redis.",
      }),
    ),
  },
  { ...closed, description: "The node itself. Applies at the next start." },
);

export const ConfigurationFile = Type.Object(
  {
    server: Type.Optional(server),
    upstreams: Type.Optional(
      named(Upstream, { maxProperties: 256, description: "The engines, by a name that clients do not see." }),
    ),
    models: Type.Optional(
      Type.Array(Model, {
        minItems: 1,
        maxItems: 1000,
        description: "The public models. They replace the whole default catalog.",
      }),
    ),
    plans: Type.Optional(
      named(Plan, {
        maxProperties: 1000,
        description:
          "What organizations may use, by name. They are added to starter, pro and unlimited, or replace them.",
      }),
    ),
    metering: Type.Optional(Metering),
    limits: Type.Optional(limits),
    messages: Type.Optional(messages),
    responses: Type.Optional(responses),
    reload: Type.Optional(reload),
    log: Type.Optional(log),
    metrics: Type.Optional(metrics),
    telemetry: Type.Optional(telemetry),
    images: Type.Optional(images),
    reports: Type.Optional(reports),
    webhooks: Type.Optional(webhooks),
  },
  { ...closed, title: "sluice.yaml", description: "The configuration of Sluice: engines, models, plans, and limits." },
);
export type ConfigurationFile = Static<typeof ConfigurationFile>;
export type ModelEntry = Static<typeof Model>;
export type UpstreamEntry = Static<typeof Upstream>;
export type PlanEntry = Static<typeof Plan>;
export type Metering = Static<typeof Metering>;

/** sluice.schema.json, as it is checked in and as `sluice init` writes it beside a new file. */
export function schemaText(): string {
  return `${JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...ConfigurationFile }, null, 2)}\n`;
}
