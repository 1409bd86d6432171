/** The settings of an engine: its address, its TLS, its limits, its checks and its time-outs. */
import { upstreamProtocols } from "../../core/upstream/codecs.ts";
import { reuses } from "../../core/upstream/http1/client.ts";
import { addressFamilies, defaultTimeouts, type UpstreamTimeouts } from "../../core/upstream/target.ts";
import { dialect, dialectRows } from "./dialect.ts";
import { choice, flag, group, list, mapping, type Row, text, type Written, whole } from "./row.ts";
import { headers } from "./sections.ts";

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

const timeoutRows: Record<keyof UpstreamTimeouts, string> = {
  connect_ms: "How long the name, TCP and TLS may take.",
  first_part_ms: "From then to the first part of the answer, plus 1 s for each 2,000 tokens of input.",
  first_part_spare_ms:
    "The same while another healthy route is ready, which is then asked instead; at most `first_part_ms`.",
  idle_ms:
    "The longest silence between two parts of an answer ([longer](engines.md#time-outs-and-limits-by-engine) with tools or signs of life).",
  total_ms: "The longest for a whole answer, all attempts together.",
};

/**
 * Makes the rows of the time-outs. The time-outs of a model's route get no defaults, which would override those of the
 * upstream.
 */
export const timeouts = (defaults: Partial<UpstreamTimeouts>, description: string) =>
  group(
    Object.fromEntries(
      Object.entries(timeoutRows).map(([name, about]) => {
        const standard = defaults[name as keyof UpstreamTimeouts];
        const bounds = { minimum: 10, maximum: day_ms };
        return [name, whole(standard === undefined ? bounds : { ...bounds, default: standard }, about)];
      }),
    ) as Record<keyof UpstreamTimeouts, Row<number, "optional">>,
    description,
  );

/** The limits on requests in flight at an engine. A route may set its own. */
export const capacity = {
  concurrent_max: whole(
    { minimum: 1, maximum: 1_000_000, absent: "no limit" },
    "The most requests of **each process** (with `scope: fleet`, of all) at the engine at once, for each replica and address. Further ones [wait](routing.md#when-engines-are-full).",
  ),
  tokens_in_flight_max: whole(
    { minimum: 1, maximum: 1_000_000_000, absent: "no limit" },
    "The most tokens of those requests: inputs, and at most 1,024 for each answer. Always per process.",
  ),
};

const file = (description: string) => text({ minLength: 1, maxLength: 4096 }, description);

const tls = group(
  {
    ca_file: file("The trusted authorities, in place of the system's."),
    certificate_file: file("The certificate that Sluice shows to the engine."),
    key_file: file("Its private key."),
  },
  "For `https`: trusted authorities, and a client certificate, in PEM. Read at the start and on SIGHUP.",
);

const headerName = (description: string) =>
  text(
    {
      pattern: "^[A-Za-z][A-Za-z0-9-]{0,63}$",
      patternErrorMessage: "must be the name of a header: letters, digits and '-', at most 64",
    },
    description,
  );

const identityHeaders = group(
  {
    organization: headerName("The header for the organization's id."),
    plan: headerName("The header for the name of its plan."),
    session: headerName("The header for the id of the conversation."),
    priority: headerName("The header for the priority of the request's plan, from `priorities`."),
  },
  "Headers that tell [engines and schedulers](engines.md#priority-and-sessions) whose a request is.",
);

const rootPath = (path: string, description: string) =>
  text(
    {
      pattern: "^/[\\x21-\\x7e]{0,1023}$",
      patternErrorMessage: `must be a path from the root of the engine's host, such as ${path}`,
      default: path,
    },
    description,
  );

export const check = group(
  {
    path: rootPath("/health", "The path to ask, from the root of the host. A status from 200 to 299 means healthy."),
    interval_ms: whole(
      { minimum: 100, maximum: hour_ms, default: 5000 },
      "How often the engine is asked. It has 5 s to answer.",
    ),
  },
  "Checks the engine's [health](routing.md#health) at intervals.",
);

export const load = group(
  {
    path: rootPath("/metrics", "The path of its metrics, from the root of the host."),
    interval_ms: whole({ minimum: 100, maximum: hour_ms, default: 1000 }, "How often the metrics are read."),
    waiting_max: whole(
      { minimum: 0, maximum: 1_000_000, default: 4 },
      "An engine is crowded if more requests than this wait in it, or more than 95 % of its cache is used.",
    ),
  },
  "Reads from the engine's metrics how busy it is (vLLM, SGLang, llama.cpp with `--metrics`).",
);

export const queue = group(
  {
    length_max: whole(
      { minimum: 0, maximum: 1_000_000, default: 1000 },
      "The most requests that wait for one engine. Further ones get 429 `capacity_exceeded`.",
    ),
    wait_ms_max: whole(
      { minimum: 0, maximum: hour_ms, default: 30_000 },
      "How long a request waits before it gets 429 `capacity_exceeded`.",
    ),
    reserved_percent: whole(
      { minimum: 0, maximum: 50, default: 0 },
      "The share of `concurrent_max` and `tokens_in_flight_max` kept for organizations that use less than it.",
    ),
  },
  "How requests wait when the engine is full.",
);

export const resolve = group(
  {
    interval_ms: whole(
      { minimum: 100, maximum: hour_ms, default: 5000 },
      "How often the name is resolved; sooner after a shorter time to live from `servers`.",
    ),
    addresses_max: whole({ minimum: 1, maximum: 256, default: 64 }, "How many addresses get requests."),
    family: choice(
      addressFamilies,
      { default: "all" },
      "Which addresses are engines. If each engine has both, choose one family, or it counts twice.",
    ),
    servers: list(
      text({ minLength: 1, maxLength: 64 }, ""),
      { maxItems: 8, default: [] },
      "DNS servers in place of the system's resolver, such as `10.0.0.10`, or `127.0.0.1:8600` for Consul.",
    ),
  },
  "For a name in `url` [with several addresses](routing.md#names-with-several-addresses), each an equal engine: `{}` for the defaults. Not with `replicas`.",
);

export const Upstream = group(
  {
    url: text(
      { isRequired: true, minLength: 1, maxLength: 2048 },
      "The base URL with its `/v1`, which is added if the URL has no path; without user name, query or fragment.",
    ),
    protocol: choice(upstreamProtocols, { default: "openai-chat" }, "The engine's protocol."),
    dialect,
    dialect_rows: dialectRows,
    api_key: text(
      { minLength: 1, maxLength: 4096, writeOnly: true },
      `The key for the engine, from the environment: \`"\${NAME}"\`.`,
    ),
    headers: headers({}, "Headers of every request to the engine, by name."),
    identity_headers: identityHeaders,
    priorities: mapping(
      whole({ minimum: -2_147_483_648, maximum: 2_147_483_647 }, ""),
      "^.{1,64}$",
      { maxProperties: 1000, "x-key": "must be the name of a plan" },
      "The priority of requests by the name of their plan, for `identity_headers.priority`.",
    ),
    tls,
    replicas: list(
      text({ minLength: 1, maxLength: 2048 }, "The base URL of another engine that serves the same."),
      { maxItems: 63 },
      "Base URLs of further, equal engines. A [session stays](routing.md#sessions-stay-at-home) with one of them.",
    ),
    resolve,
    cache_salt: flag(
      { default: false },
      "Whether each organization has a [prefix cache](routing.md#sessions-stay-at-home) of its own (vLLM). Not for `anthropic-messages`.",
    ),
    reuse: choice(
      reuses,
      { default: "any" },
      "Whose requests a connection may carry, for engines that you [do not trust](security.md#answers-that-nobody-asked-for).",
    ),
    running_usage: choice(
      ["off", "usage", "timings"],
      { default: "off" },
      "Whether the engine [reports counts](engines.md#what-engines-report) on every chunk: `usage` for vLLM and SGLang, `timings` for llama.cpp. For `openai-chat` only.",
    ),
    check,
    load,
    ...capacity,
    scope: choice(
      ["process", "fleet"],
      { default: "process" },
      "Whether `concurrent_max` is of each process, or of the [whole fleet](routing.md#one-limit-for-all-nodes). Not with `tokens_in_flight_max`.",
    ),
    queue,
    timeouts: timeouts(defaultTimeouts, "How long Sluice waits for the engine."),
  },
  "An engine.",
);
export type UpstreamEntry = Written<typeof Upstream.properties>;
