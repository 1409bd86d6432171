/** The configuration in force, without secrets. */
import Type from "typebox";
import type { Value } from "../schema/codec.ts";
import { fail } from "./error.ts";
import { nullable } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Fleet");

const whole = () => Type.Integer({ minimum: 0 });

export const ShownConfiguration = Type.Object(
  {
    hash: Type.String({ description: "The same on all nodes with the same settings." }),
    settings: Type.Record(Type.String(), Type.Unknown(), {
      description: "Sections of `sluice.yaml` that have no secrets, with the defaults: docs/configuration.md.",
    }),
    server: Type.Object({
      host: Type.String(),
      port: Type.Integer(),
      operator_port: nullable(Type.Integer()),
      console_port: nullable(Type.Integer()),
      workers: Type.Unknown({ description: "A number, or `auto`." }),
      has_tls: Type.Boolean(),
      trusted_proxies: Type.Array(Type.String()),
    }),
    storage: Type.Object({ database: Type.String(), has_redis: Type.Boolean() }),
    models: Type.Array(
      Type.Object({
        id: Type.String(),
        context_tokens: whole(),
        output_tokens_max: whole(),
        capabilities: Type.Array(Type.String()),
        prices: Type.Object(
          { input: whole(), cached_input: whole(), cache_write: whole(), output: whole() },
          { description: "Micro-units for each token." },
        ),
        routes: Type.Array(
          Type.Object({ upstream: Type.String(), model: Type.String(), priority: whole(), weight: whole() }),
        ),
      }),
    ),
    upstreams: Type.Array(
      Type.Object({
        name: Type.String(),
        url: Type.String(),
        protocol: Type.String(),
        has_key: Type.Boolean(),
        headers: Type.Array(Type.String(), { description: "Their names." }),
        settings: Type.Record(Type.String(), Type.Unknown(), { description: "Timeouts, capacity, checks and load." }),
      }),
    ),
    identity: nullable(
      Type.Object({
        service_url: nullable(Type.String()),
        console_url: nullable(Type.String()),
        issuers: Type.Array(
          Type.Object({
            issuer: Type.String(),
            client_id: nullable(Type.String()),
            has_client_secret: Type.Boolean(),
            audiences: Type.Array(Type.String()),
          }),
        ),
        rules: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
          description: "In the order in which they count.",
        }),
      }),
    ),
    notices: Type.Array(Type.String(), { description: "What somebody should look at." }),
  },
  { $id: "Configuration" },
);
export type ShownConfiguration = Value<typeof ShownConfiguration>;

const example: ShownConfiguration = {
  hash: "0123456789abcdef",
  settings: { log: { level: "info", format: "json" } },
  server: {
    ...{ host: "127.0.0.1", port: 8080, operatorPort: 9090, consolePort: null, workers: 1 },
    ...{ hasTls: false, trustedProxies: [] },
  },
  storage: { database: "postgres", hasRedis: true },
  models: [
    {
      ...{ id: "acme/writer-1", contextTokens: 131_072, outputTokensMax: 8192, capabilities: ["tools"] },
      prices: { input: 20, cachedInput: 2, cacheWrite: 25, output: 40 },
      routes: [{ upstream: "gpu-1", model: "writer", priority: 0, weight: 1 }],
    },
  ],
  upstreams: [
    { name: "gpu-1", url: "http://10.0.0.7:8000/v1", protocol: "openai-chat", hasKey: true, headers: [], settings: {} },
  ],
  identity: null,
  notices: [],
};

export const configurationVerbs = [
  verb({
    name: "showConfiguration",
    route: "GET /configuration",
    summary: "Show the configuration in force",
    description:
      "Of the node that answers, after its last reload, with the defaults; of secrets only whether there is one. Nodes are compared by `hash` (`listNodes`).",
    roles: ["admin", "viewer"],
    faults: ["wrong_state"],
    takes: Type.Object({}),
    answers: ShownConfiguration,
    example: { takes: {}, answer: example },
    command: {
      words: "config show",
      description: "show the configuration in force as JSON, without secrets",
      takes: {},
      says: (shown) => `${JSON.stringify(shown, null, 2)}\n`,
    },
    async act({ configuration }) {
      return configuration ? configuration() : fail("There is no configuration here.", "wrong_state");
    },
  }),
] as const;
