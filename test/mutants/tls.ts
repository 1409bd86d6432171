import type { Mutant } from "./mutant.ts";

const postgres = "test/stores/postgres/tls.test.ts";
const rule = "docs/design/service.md, TLS";

export const tls: Mutant[] = [
  {
    name: "any authority vouches for Postgres",
    file: "src/stores/postgres/tls.ts",
    find: "if (!secure.authorized) {",
    replace: "if (false as boolean) {",
    caughtBy: [`${postgres} > is looked at with authorities`],
    rule,
  },
  {
    name: "any name will do for verify-full",
    file: "src/stores/postgres/tls.ts",
    find: 'if (mode !== "verify-full") return null;',
    replace: "if (mode) return null;",
    caughtBy: [`${postgres} > must bear the name`],
    rule,
  },
  {
    name: "what came in the clear is read",
    file: "src/stores/postgres/tls.ts",
    find: "if (answer.length !== 1)",
    replace: "if (answer.length < 1)",
    caughtBy: [`${postgres} > what a stranger puts behind`],
    rule,
  },
  {
    name: "a mode that asks for TLS goes on without",
    file: "src/stores/postgres/tls.ts",
    find: 'if (security.mode === "prefer" || security.mode === "allow") return socket;',
    replace: "if (security.mode) return socket;",
    caughtBy: [`${postgres} > a server without TLS is spoken to`],
    rule,
  },
  {
    name: "a port that speaks HTTPS tells people http://",
    file: "src/node/listeners.ts",
    find: "isSecure: identity !== null",
    replace: "isSecure: identity === undefined",
    caughtBy: ["test/core/http/tls.test.ts > serves HTTPS"],
    rule: "docs/first-request.md, Your first request",
  },
  {
    name: "a reload leaves the certificate",
    file: "src/core/http/listen.ts",
    find: "      server = serving(elysia, { ...address, port: server.port! }, next);\n",
    replace: "      server = serving(elysia, { ...address, port: server.port! }, identity ?? next);\n",
    caughtBy: ["test/core/http/tls.test.ts > a new certificate"],
    rule: "docs/design/runtime.md, Bun as a server",
  },
  {
    name: "a console that begins to listen later shows the certificate of the start",
    file: "src/node/listeners.ts",
    find: "        current = next;\n",
    replace: "",
    caughtBy: ["test/core/http/tls.test.ts > a console that begins"],
    rule: "docs/configuration.md, TLS",
  },
  {
    name: "suites without authenticated encryption are offered",
    file: "src/core/http/listen.ts",
    find: "key: identity.key, ciphers }",
    replace: "key: identity.key }",
    caughtBy: ["test/core/http/tls.test.ts > of TLS 1.2"],
    rule: "docs/security.md, What is encrypted",
  },
  {
    name: "the line break of a file belongs to the secret",
    file: "src/config/secret.ts",
    find: 'found.text.replace(/\\r?\\n$/, "")',
    replace: "found.text",
    caughtBy: ["test/config/secret.test.ts > sluice.yaml names files"],
    rule: "docs/design/service.md, The catalog",
  },
  {
    name: "doctor asks an engine without its certificates",
    file: "src/admin/cli/engine-check.ts",
    find: "tls: upstream.tls ?? null,",
    replace: "tls: null,",
    caughtBy: ["test/admin/cli/doctor.test.ts > asks an engine as requests do"],
    rule: "docs/operating.md, Starting, stopping, upgrading",
  },
];
