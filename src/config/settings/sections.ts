/** The sections of sluice.yaml other than engines, models and plans: one row for each setting. */
import { weekDays } from "../../admin/store/calendar.ts";
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
  description: "How many processes serve ([workers](#workers)); `auto`: one for each core.",
};

const server = group(
  {
    workers,
    warm_up_ms: whole(
      { minimum: 0, maximum: 60_000, default: 2000, variable: "SLUICE_WARM_UP_MS" },
      "How long a node may [warm up](#warming-up); 0: not at all.",
    ),
    read_pause_ms_max: whole(
      { minimum: 0, maximum: 100, default: 50 },
      "The longest [pause](performance.md#pauses-under-load) of a busy node after each read from an engine; 0: none.",
    ),
    read_pause_ms_min: whole(
      { minimum: 0, maximum: 100, default: 0 },
      "The pause of a node that isn't busy, where CPU matters more than an even flow of tokens.",
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
      "The day on which a month begins; in a shorter month the last one.",
    ),
  },
  "When weeks and months of new organizations begin; without it, they count from the creation, in UTC.",
);

const metering = group(
  {
    currency: text(
      {
        default: "USD",
        pattern: "^([A-Z]{3}|credits)$",
        patternErrorMessage: "must be a currency of ISO 4217, such as USD or EUR, or credits",
      },
      "The currency of all prices, limits and costs; needed with `prices`. The database keeps that of its first start.",
    ),
    lease_s: number(
      { minimum: 0.1, maximum: 3600, default: 60 },
      "How long after its last checkpoint a dead node's request is settled by another.",
    ),
    checkpoint_s: number(
      { minimum: 0.02, maximum: 600, default: 2 },
      "How often a running request saves what it has used. If only a short lease is set, a third of that.",
    ),
    sweep_s: number({ minimum: 0.02, maximum: 600, default: 5 }, "How often a node looks for lapsed leases."),
    unstreamed_tokens_max: whole(
      { minimum: 0, maximum: 1_000_000, default: 512 },
      "Up to this output cap, the engine doesn't stream to a client that doesn't; a fast one doesn't [up to 4,096](design/usage.md#answers-that-arent-streamed) either. 0: it always streams.",
    ),
    recovery: choice(
      ["checkpoint", "hold"],
      { default: "checkpoint" },
      "What a dead node's stream is charged: usage up to its last checkpoint, or all that was held.",
    ),
    end_revoked: flag(
      { default: true },
      "Whether running requests end when their key is revoked, or their organization is suspended or without a plan.",
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
      "The largest request body, after decompression.",
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
      "The most values of a body, plus one for each 128 bytes; four times as many where they may be token ids.",
    ),
    body_members_max: whole(
      { minimum: 1000, maximum: 100_000_000, default: 60_000 },
      "The most members of a body's objects together, plus one for each 160 bytes.",
    ),
    body_names_max: whole(
      { minimum: 100, maximum: 100_000_000, default: 10_000 },
      "The most different names of members, plus one for each 1,024 bytes.",
    ),
    body_ratio_max: whole(
      { minimum: 10, maximum: 100_000, default: 100 },
      "The largest ratio of a body's decompressed to its compressed size, above 1 MiB.",
    ),
    memory_bytes: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "Above this many resident bytes, new inference gets 503 `overloaded`. 0: 85 % of the container's limit, or half of the machine's memory.",
    ),
    in_flight_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "The most bytes that a node's requests hold; beyond, 503 `overloaded`. 0: a quarter of `memory_bytes`, at least two of the largest bodies.",
    ),
    key_in_flight_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 0 },
      "The most bytes that the requests of a key hold; beyond, 429 `concurrency_limit_exceeded`. 0: an eighth of the node's, at least four of the largest bodies.",
    ),
    item_cache_bytes_max: whole(
      { minimum: 0, maximum: tebibyte, default: 64 * mebibyte },
      "A process's memory for messages and tools of recent requests; at most a 32nd of `memory_bytes`.",
    ),
    websocket_frame_bytes_max: whole(
      { minimum: 0, maximum: gibibyte, default: 4 * mebibyte },
      "The largest message of a WebSocket. A node has at most 2,000 WebSockets, and as many as such messages fit into half of `in_flight_bytes_max`; a key has 64. Beyond that, and with 0, an upgrade gets 426, and clients use POST.",
    ),
    failed_authentications_per_minute: whole(
      { minimum: 1, maximum: 1_000_000, default: 300 },
      "The most requests a minute without a valid key from one client address. Beyond, unknown keys get 429.",
    ),
    // The default is longer than the idle timeout of common balancers, 60 s, because connections should be closed by
    // the side that sends requests.
    idle_ms: whole(
      { minimum: 1000, maximum: 255_000, default: 75_000 },
      "How long a connection may be silent between requests, and a further request's head may take. The first has 10 seconds.",
    ),
    grant_ms: whole(
      { minimum: 10, maximum: 60_000, default: 3000 },
      "How long an admission may take before 503 `storage_unavailable`.",
    ),
    first_event_hold_ms: whole(
      { minimum: 0, maximum: 10_000, default: 5000 },
      "How long a stream waits for its first part before it sends a status, so that early failures have their own.",
    ),
    heartbeat_ms: whole(
      { minimum: 10, maximum: 10_000, default: 10_000 },
      "The longest silence on a stream before a heartbeat is written.",
    ),
    drain_delay_ms: whole(
      { minimum: 0, maximum: 600_000, default: 0 },
      "After SIGTERM, how long `/readyz` fails before the node refuses connections: a few seconds behind a load balancer.",
    ),
    drain_ms: whole(
      { minimum: 0, maximum: day_ms, default: 25_000 },
      "How long running requests may then take before they end with their protocol's error.",
    ),
  },
  "Limits on requests and connections.",
  { applies: "start" },
);

const messages = group(
  {
    keep_billing_line: flag(
      { default: false },
      "Whether to keep the line `x-anthropic-billing-header: …` of Claude Code, which changes with every request and so defeats prefix caches.",
    ),
  },
  "How Sluice serves `/v1/messages`.",
);

const responses = group(
  {
    store: flag({ default: true }, "`false`: nothing is stored, and nothing found that was stored before."),
    kept_days: whole({ minimum: 1, maximum: 365, default: 30 }, "How long a response is stored."),
    organization_bytes_max: whole(
      { minimum: kibibyte, maximum: tebibyte, default: gibibyte },
      "The most bytes of one organization's responses; the oldest go first.",
    ),
  },
  "What Sluice stores for `/v1/responses`.",
);

const answers = group(
  {
    kept_hours: whole({ minimum: 1, maximum: 168, default: 24 }, "How long an answer can be read again."),
    answer_bytes_max: whole(
      { minimum: kibibyte, maximum: 256 * mebibyte, default: 16 * mebibyte },
      "The largest answer that is kept.",
    ),
    organization_bytes_max: whole(
      { minimum: kibibyte, maximum: tebibyte, default: 256 * mebibyte },
      "The most bytes of one organization's answers; the oldest go first.",
    ),
    open_max: whole(
      { minimum: 1, maximum: 100_000, default: 1_000 },
      "The most kept answers that a node writes or reads at once; beyond, 503 `overloaded`.",
    ),
  },
  "What Sluice keeps of answers with an [idempotency key](protocols.md#repeating-a-request), so that they can be read again.",
);

const reload = group(
  {
    force: flag(
      { default: false },
      "Whether a reload may remove a plan that organizations are on; their inference then gets 402.",
    ),
  },
  "Rules of a reload.",
);

const log = group(
  {
    level: choice(
      ["debug", "info", "warn", "error"],
      { default: "info" },
      "The least severe lines to write. Requests are `info`, those that fail with 5xx `error`, probes and `/metrics` `debug`.",
    ),
    format: choice(["json", "logfmt"], { default: "json" }, "How a line is written."),
    engine_text: flag(
      { default: false },
      "Whether the log has the engine's own text of a refusal, which `sluice request show` has in any case.",
    ),
  },
  "What the log has.",
);

const metrics = group(
  {
    organizations_max: whole(
      { minimum: 0, maximum: 1000, default: 0 },
      "How many organizations `usage_organization_…` shows by id, largest first. Needs `SLUICE_OPERATOR_PORT`.",
    ),
  },
  "What the metrics have.",
);

/** Makes the row of a setting with headers that Sluice sends. Their values may be secrets. */
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
      "Where a collector takes OTLP over HTTP, such as `http://localhost:4318`.",
    ),
    headers: headers({ default: {} }, "Headers of every request to the collector, such as a key."),
    service_name: text(
      { minLength: 1, maxLength: 255, default: "sluice" },
      "`service.name` of everything that is sent.",
    ),
    sample_ratio: number({ minimum: 0, maximum: 1, default: 0.01 }, "The share of requests that are traced."),
    follow_callers: flag(
      { default: true },
      "Whether a caller's `traceparent` decides instead: not if you do not trust callers.",
    ),
    caller_ids: flag(
      { default: false },
      "Whether spans have `sluice.organization.id`, `sluice.key.id` and `sluice.team.id`.",
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
      "Whether to refuse private networks too: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7; `.internal`, `.local` and the like; names without a dot.",
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
      "Hosts from which no image may come, with their subdomains.",
    ),
  },
  "Which images an engine may be asked to fetch.",
);

const webhooks = group(
  {
    allow_private: flag(
      { default: false },
      "Whether webhooks may lead to this machine and private networks, and use plain HTTP.",
    ),
  },
  "Where notices may be sent.",
);

/**
 * Prices were once in whole units for a token. A file that names no currency may still have such prices, so this text
 * says how to convert them.
 */
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
