import type { Mutant } from "./mutant.ts";

const spelling = "test/config/spelling.test.ts";

export const configuration: Mutant[] = [
  {
    name: "an engine is asked for its one model by a name that it does not know",
    file: "src/config/spelling.ts",
    find: "if (names.length === 1) return () => names[0]!;\n",
    replace: "",
    caughtBy: [`${spelling} > an engine with one model`],
    rule: "docs/configuration.md, One engine, no file",
  },
  {
    name: "an engine behind a proxy that answers 502 is never asked for its names again",
    file: "src/config/spelling.ts",
    find: "if (listed.length === 0) {",
    replace: "if (listed.length === 0 && (reply.status === null || notReady(reply.status) !== null)) {",
    caughtBy: [`${spelling} > an engine is asked again`],
    rule: "docs/configuration.md, One engine, no file",
  },
  {
    name: "an engine that starts after Sluice is never asked for its names",
    file: "src/node/naming.ts",
    find: "if (configuration.current().namesFrom) await",
    replace: "if (!configuration.current().namesFrom) await",
    caughtBy: ["test/node/naming.test.ts"],
    rule: "docs/configuration.md, One engine, no file",
  },
  {
    name: "the console takes the port of an engine that does not run yet",
    file: "src/node/console.ts",
    find: " || isEngines ? 0",
    replace: " ? 0",
    caughtBy: ["test/node/console.test.ts"],
    rule: "docs/console.md, Opening it",
  },
  {
    name: "an operator is told to start an engine whose certificate is not trusted",
    file: "src/config/unreached.ts",
    find: "return cause instanceof Error ? innermost(cause)",
    replace: "return cause instanceof RangeError ? innermost(cause)",
    caughtBy: ["test/config/unreached.test.ts > a certificate"],
    rule: "docs/operating.md, SluiceUpstreamFailing",
  },
  {
    name: "a password of Redis that was not escaped ends the start without a word about Redis",
    file: "src/config/settings/variables.ts",
    find: "(isWhole(text)",
    replace: "(text",
    caughtBy: ["test/config/environment.test.ts"],
    rule: "docs/configuration.md, Environment",
  },
  {
    name: "a user of Redis who may not call INFO is connected anew for ever",
    file: "src/stores/redis/connection.ts",
    find: 'if (!isRefusal(error, "NOPERM")) throw error;',
    replace: "if (error) throw error;",
    caughtBy: ["test/stores/redis/connection.test.ts > on one connection to one server"],
    rule: "docs/configuration.md, TLS",
  },
  {
    name: "Ctrl-C under npm cuts the answers that run",
    file: "src/node/signals.ts",
    find: "if (now_ms() - interrupted_ms < same_ms) return;",
    replace: "if (now_ms() < interrupted_ms) return;",
    caughtBy: ["test/node/signals.test.ts"],
    rule: "docs/operating.md, Starting, stopping, upgrading",
  },
  {
    name: "the doctor asks every engine as OpenAI's",
    file: "src/admin/cli/engine-check.ts",
    find: "upstreamCodecs[upstream.protocol]",
    replace: 'upstreamCodecs["openai-chat"]',
    caughtBy: ["test/admin/cli/doctor.test.ts > asks an engine by its own protocol"],
    rule: "docs/upgrading.md, Before",
  },
];
