/** The sections of sluice.yaml other than engines, models and plans: one row for each setting. */
import { weekDays } from "../../core/store/calendar.ts";
import { identity } from "./identity.ts";
import {
  choice,
  type Filled,
  flag,
  type Group,
  group,
  list,
  mapping,
  number,
  type Row,
  text,
  type Written,
  whole,
} from "./row.ts";
import { smtp } from "./smtp.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
const gibibyte = 1024 * mebibyte;
const tebibyte = 1024 * gibibyte;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

export const workers_max = 64;
export type WorkersWanted = number | "auto";

const workersMessage = `must be auto, or a whole number from 1 to ${workers_max}`;
/** The number of processes that serve, or `auto`. */
const workers: Row<WorkersWanted, "defaulted"> = {
  anyOf: [
    { type: "integer", minimum: 1, maximum: workers_max, patternErrorMessage: workersMessage } as Row,
    { type: "string", enum: ["auto"], patternErrorMessage: workersMessage } as Row,
  ],
  default: 1,
  variable: "SLUICE_WORKERS",
  description:
    "How many processes serve; `auto`: one for each core ([workers](#workers)). More than one needs Postgres and Redis.",
};

const server = group(
  {
    workers,
    warm_up_ms: whole(
      { minimum: 0, maximum: 60_000, default: 2000, variable: "SLUICE_WARM_UP_MS" },
      "How long a node may [warm up](#warming-up) with requests to itself. 0: not at all.",
    ),
    read_pause_ms_max: whole(
      { minimum: 0, maximum: 100, default: 50 },
      "The longest pause after each read of a stream from an engine. A busy node [pauses](performance.md#pauses-under-load). 0: never.",
    ),
    read_pause_ms_min: whole(
      { minimum: 0, maximum: 100, default: 0 },
      "The pause of a node that isn't busy. Set it where CPU matters more than an even flow of tokens.",
    ),
  },
  "The node itself.",
  { applies: "start" },
);

export const calendar = group(
  {
    zone: text({ isRequired: true, minLength: 1, maxLength: 64 }, "The time zone, such as `Europe/Berlin`."),
    week_starts: choice(weekDays, { default: "monday" }, "The day on which a week begins."),
    month_starts: whole(
      { minimum: 1, maximum: 31, default: 1 },
      "The day on which a month begins. In a shorter month it is the last day.",
    ),
  },
  "When weeks and months of new organizations begin. Without it, they are counted from the creation, in UTC.",
);

const metering = group(
  {
    currency: text(
      {
        default: "USD",
        pattern: "^([A-Z]{3}|credits)$",
        patternErrorMessage: "must be a currency of ISO 4217, such as USD or EUR, or credits",
      },
      "The currency of all prices, limits and costs. Needed in a file with `prices`. The database keeps that of its first start.",
    ),
    lease_s: number(
      { minimum: 0.1, maximum: 3600, default: 60 },
      "How long after the last checkpoint another node settles a running request of a dead node.",
    ),
    checkpoint_s: number(
      { minimum: 0.02, maximum: 600, default: 2 },
      "How often a running request saves what it has used; shorter than the lease. If only a short lease is set, a third of that.",
    ),
    sweep_s: number({ minimum: 0.02, maximum: 600, default: 5 }, "How often a node looks for lapsed leases."),
    unstreamed_tokens_max: whole(
      { minimum: 0, maximum: 1_000_000, default: 512 },
      "If a client doesn't stream and its output cap is at most this, the engine doesn't stream either. 0: the engine always streams.",
    ),
    recovery: choice(
      ["checkpoint", "hold"],
      { default: "checkpoint" },
      "What a dead node's stream is charged: usage up to its last checkpoint, or everything that was held.",
    ),
    end_revoked: flag(
      { default: true },
      "Whether running requests end when their key is revoked, or their organization is suspended or loses its plan.",
    ),
    calendar,
  },
  "How usage is kept exact.",
  { applies: "start" },
);

const limits = group(
  {
    body_bytes_max: whole(
      { minimum: kibibyte, maximum: gibibyte, default: 32 * mebibyte },
      "The largest request body in bytes, after decompression. A larger one gets 413.",
    ),
    body_read_ms: whole(
      { minimum: 100, maximum: hour_ms, default: 60_000 },
      "How long a client may take to send its body.",
    ),
    body_depth_max: whole(
      { minimum: 16, maximum: 1000, default: 100 },
      "How deep objects and arrays of a body may be nested.",
    ),
    body_values_max: whole(
      { minimum: 1000, maximum: 100_000_000, default: 100_000 },
      "How many values a body may hold, plus one for each 128 bytes of it. More get 413.",
    ),
    body_members_max: whole(
      { minimum: 1000, maximum: 100_000_000, default: 60_000 },
      "How many members all objects of a body may have together, plus one for each 160 bytes of it. More get 413.",
    ),
    body_names_max: whole(
      { minimum: 100, maximum: 100_000_000, default: 10_000 },
      "How many different names these members may have, plus one for each 1,024 bytes of the body. More get 413.",
    ),
    body_ratio_max: whole(
      { minimum: 10, maximum: 100_000, default: 100 },
      "The largest ratio of a body's decompressed to its compressed size; more gets 413. Up to 1 MiB, any ratio is fine.",
    ),
    memory_bytes: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "Above this many resident bytes of the node, new inference gets 503 `overloaded`. 0: 85 % of the container's limit, or half of the machine's memory.",
    ),
    in_flight_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "The most bytes that a node's requests hold; beyond, 503 `overloaded`. 0: a quarter of `memory_bytes`, and at least two of the largest bodies.",
    ),
    key_in_flight_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "The most of these bytes for one key; beyond, 429 `concurrency_limit_exceeded`. 0: an eighth of the node's, and at least four of the largest bodies.",
    ),
    item_cache_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 64 * mebibyte },
      "The memory of each process for messages and tools of recent requests; at most a 32nd of `memory_bytes`. 0: none.",
    ),
    websocket_frame_bytes_max: whole(
      { minimum: 0, maximum: gibibyte, default: 4 * mebibyte },
      "The largest message of a WebSocket. A node has at most 2,000 WebSockets, and no more than such messages fit into half of `in_flight_bytes_max`; a key has at most 64. Beyond that, and with 0, an upgrade gets 426, and clients use POST.",
    ),
    failed_authentications_per_minute: whole(
      { minimum: 1, maximum: 1_000_000, default: 300 },
      "The most requests without a valid key from one client address a minute. Beyond that, keys that the node doesn't know get 429.",
    ),
    // Longer than the idle timeout of common balancers, 60 s: the side that sends requests should close a connection.
    idle_ms: whole(
      { minimum: 1000, maximum: 255_000, default: 75_000 },
      "How long a connection may be silent between requests, and the head of a further request may take. The first head has 10 seconds.",
    ),
    grant_ms: whole(
      { minimum: 10, maximum: 60_000, default: 3000 },
      "How long an admission may take before the request gets 503 `storage_unavailable`.",
    ),
    first_event_hold_ms: whole(
      { minimum: 0, maximum: 10_000, default: 5000 },
      "How long a stream waits for the first part before it sends its status, so that early failures have a true status.",
    ),
    heartbeat_ms: whole(
      { minimum: 10, maximum: 10_000, default: 10_000 },
      "The longest silence on a stream before a heartbeat is written.",
    ),
    drain_delay_ms: whole(
      { minimum: 0, maximum: 600_000, default: 0 },
      "After SIGTERM, how long `/readyz` fails before the node refuses connections. Behind a load balancer, set a few seconds.",
    ),
    drain_ms: whole(
      { minimum: 0, maximum: day_ms, default: 25_000 },
      "How long running requests may then take to finish before they end with their protocol's error.",
    ),
  },
  "Limits on requests and connections.",
  { applies: "start" },
);

const messages = group(
  {
    keep_billing_line: flag(
      { default: false },
      "Whether to keep the line `x-anthropic-billing-header: …` of Claude Code's system text, which changes with every request and so defeats prefix caches.",
    ),
  },
  "How Sluice serves `/v1/messages`.",
);

const responses = group(
  {
    store: flag({ default: true }, "`false`: Sluice stores nothing, and finds nothing that it stored before."),
    kept_days: whole({ minimum: 1, maximum: 365, default: 30 }, "How long a response is stored."),
    organization_bytes_max: whole(
      { minimum: kibibyte, maximum: tebibyte, default: gibibyte },
      "The most bytes of one organization's responses. The oldest go first; a single larger response isn't stored.",
    ),
  },
  "What Sluice stores for `/v1/responses`.",
);

const answers = group(
  {
    kept_hours: whole(
      { minimum: 1, maximum: 168, default: 24 },
      "How long an answer can be read again, and an idempotency key is known.",
    ),
    answer_bytes_max: whole(
      { minimum: kibibyte, maximum: 256 * mebibyte, default: 16 * mebibyte },
      "The largest log of one answer. A larger answer isn't kept.",
    ),
    organization_bytes_max: whole(
      { minimum: kibibyte, maximum: tebibyte, default: 256 * mebibyte },
      "The most bytes of one organization's logs. The oldest go first; their keys stay known, and are refused.",
    ),
    open_max: whole(
      { minimum: 1, maximum: 100_000, default: 1_000 },
      "The most kept answers that a node writes or reads at once. Beyond that, requests get 503 `overloaded`.",
    ),
  },
  "What Sluice keeps of answers with an [idempotency key](protocols.md#repeating-a-request), so that they can be read again.",
);

const reload = group(
  {
    force: flag(
      { default: false },
      "Whether a reload may remove a plan that organizations are on. Their inference then gets 402 until you give them another plan.",
    ),
  },
  "Rules of a reload.",
);

const log = group(
  {
    level: choice(
      ["debug", "info", "warn", "error"],
      { default: "info" },
      "The least severe lines to write. Requests are `info`, those that fail with 5xx `error`; probes and `/metrics` are `debug`, unless they fail with 500.",
    ),
    format: choice(["json", "logfmt"], { default: "json" }, "How a line is written."),
    engine_text: flag(
      { default: false },
      "Whether attempts in the log have the engine's own text of a refusal. `sluice request show` has it in any case.",
    ),
  },
  "What the log has.",
);

const metrics = group(
  {
    organizations_max: whole(
      { minimum: 0, maximum: 1000, default: 0 },
      "How many organizations `usage_organization_cost` and `usage_organization_requests` show by id, largest first. Needs `SLUICE_OPERATOR_PORT`.",
    ),
  },
  "What the metrics have.",
);

/** The row of headers that Sluice sends. Their values may be secrets. */
export const headers = <const Given extends { default?: Record<string, string> }>(given: Given, description: string) =>
  mapping(
    text(
      {
        maxLength: 4096,
        writeOnly: true,
        pattern: "^[\\x20-\\x7e]*$",
        patternErrorMessage: "must be text that a header can carry: ASCII, without line breaks",
      },
      "",
    ),
    "^[A-Za-z][A-Za-z0-9-]{0,63}$",
    {
      "x-key": "must be the name of a header: letters, digits and '-', at most 64",
      maxProperties: 32,
      ...given,
    },
    description,
  );

const telemetry = group(
  {
    endpoint: text(
      {
        isRequired: true,
        maxLength: 2048,
        pattern: "^https?://[^\\s@?#]+$",
        patternErrorMessage: "must be an http or https URL without user name, query or fragment",
      },
      "The base URL at which a collector takes OTLP over HTTP, such as `http://localhost:4318`.",
    ),
    headers: headers(
      { default: {} },
      "Headers of every request to the collector, such as a key: a mapping from names to values.",
    ),
    service_name: text(
      { minLength: 1, maxLength: 255, default: "sluice" },
      "`service.name` of everything that is sent.",
    ),
    sample_ratio: number({ minimum: 0, maximum: 1, default: 0.01 }, "The share of requests that are traced."),
    follow_callers: flag(
      { default: true },
      "Whether a caller's `traceparent` decides instead. `false` if you do not trust callers.",
    ),
    caller_ids: flag(
      { default: false },
      "Whether spans have `sluice.organization.id`, `sluice.key.id` and, once admitted, `sluice.team.id`, so that readers of traces can tell whose each request is.",
    ),
    metrics_ms: whole({ minimum: 0, maximum: hour_ms, default: 60_000 }, "How often metrics are sent. 0: never."),
  },
  "OpenTelemetry: traces and metrics of inference, sent to a collector by OTLP.",
  { applies: "start" },
);

const images = group(
  {
    deny_private: flag(
      { default: false },
      "Whether to refuse addresses and names of private networks too (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7; `.internal`, `.local` and the like; names without a dot).",
    ),
    denied_hosts: list(
      text(
        {
          pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$",
          patternErrorMessage: "must be the name of a host, such as example.com, or an IPv4 address",
        },
        "",
      ),
      { maxItems: 1000, uniqueItems: true, default: [] },
      "Hosts from which no image may come, each with its subdomains.",
    ),
  },
  "Which images an engine may be asked to fetch.",
);

const webhooks = group(
  {
    allow_private: flag(
      { default: false },
      "Whether webhooks may lead to this machine, its link and private networks, and use plain HTTP.",
    ),
  },
  "Where notices may be sent.",
);

/** Prices were once in whole units for a token, so the prices of a file that names no currency may be old ones. */
export const newPrices =
  "prices are amounts for a million tokens now: a new price is the old one times price_per_million_units (without it: divided by 1,000), and a limit is the old one times price_per_million_units divided by 1,000,000 (without it: divided by 1,000,000,000)";

const reports = group(
  {
    provider: text(
      {
        minLength: 1,
        maxLength: 200,
        pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        patternErrorMessage: "must be text on one line",
        default: "Sluice",
      },
      "The name of the provider in FOCUS reports.",
    ),
  },
  "How reports name the service.",
  { "x-gone": { price_per_million_units: newPrices, currency: "it is metering.currency now" } },
);

export const sections = {
  server,
  metering,
  limits,
  messages,
  responses,
  answers,
  reload,
  log,
  metrics,
  telemetry,
  images,
  reports,
  webhooks,
  smtp,
  identity,
};

/** The settings of all sections in force. A section with a required setting is null if the file leaves it out. */
export type Sections = {
  [Name in keyof typeof sections]: (typeof sections)[Name] extends Group<infer Fields>
    ? object extends Written<Fields>
      ? Filled<Fields>
      : Filled<Fields> | null
    : never;
};
