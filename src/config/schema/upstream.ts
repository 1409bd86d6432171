/** An engine of sluice.yaml: how it is reached, who it trusts, how much it takes, and how it is looked after. */
import Type, { type Static } from "typebox";
import { upstreamProtocols } from "../../upstream/codecs.ts";
import { addressFamilies } from "../../upstream/target.ts";
import { checkLimits, loadLimits, queueLimits, resolveLimits, upstreamTimeouts } from "../limits.ts";
import { closed, headers, limited, ownConcurrent, ownTokens, path } from "./values.ts";

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

const tls = Type.Object(
  {
    ca_file: path("The authorities that are trusted, in PEM, in place of the system's."),
    certificate_file: path("The certificate that Sluice shows, in PEM."),
    key_file: path("Its private key, in PEM."),
  },
  { ...closed, description: "Whom https trusts, and who Sluice is. Files are read at the start and on SIGHUP." },
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
export type UpstreamEntry = Static<typeof Upstream>;
