/** The configuration in force, without secrets. */
import Type from "typebox";
import { ShownConfiguration } from "./configuration-shape.ts";
import { fail } from "./error.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Fleet");

const price = (amount: string) => ({ amount, currency: "USD" });
const example: ShownConfiguration = {
  hash: "0123456789abcdef",
  settings: { log: { level: "info", format: "json" } },
  server: {
    host: "127.0.0.1",
    port: 8080,
    operatorPort: 9090,
    consolePort: null,
    workers: 1,
    hasTls: false,
    trustedProxies: [],
  },
  storage: { database: "postgres", hasRedis: true },
  models: [
    {
      id: "acme/writer-1",
      kind: "chat",
      aliases: [],
      contextTokens: 131_072,
      outputTokensLimit: 8192,
      capabilities: ["tools"],
      prices: {
        input: price("0.150000"),
        cachedInput: price("0.037500"),
        cacheWrite: price("0.187500"),
        output: price("0.600000"),
      },
      retiresAt: null,
      replacedBy: null,
      routes: [{ upstream: "gpu-1", model: "writer", priority: 0, weight: 1 }],
    },
  ],
  upstreams: [
    { name: "gpu-1", url: "http://10.0.0.7:8000/v1", protocol: "openai-chat", hasKey: true, headers: [], settings: {} },
  ],
  identity: null,
  smtp: null,
  notices: [],
};

export const configurationVerbs = [
  verb({
    name: "showConfiguration",
    route: "GET /configuration",
    summary: "Show the configuration in force",
    description:
      "The answering node's configuration after its last reload, with the defaults. Of secrets it says only whether there is one. Compare nodes by `hash` (`listNodes`).",
    roles: ["admin", "viewer"],
    faults: ["wrong_state"],
    takes: Type.Object({}),
    answers: ShownConfiguration,
    example: { takes: {}, answer: example },
    command: {
      words: "config show",
      description: "show the configuration in force as JSON, without secrets",
      says: (shown) => `${JSON.stringify(shown, null, 2)}\n`,
    },
    async act({ configuration }) {
      return configuration ? configuration() : fail("There is no configuration here.", "wrong_state");
    },
  }),
] as const;
