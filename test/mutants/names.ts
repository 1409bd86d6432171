// Mutants of the code that looks up engines' host names, each of which may have several addresses.

import type { Mutant } from "./mutant.ts";

const rule = "docs/routing.md, Names with several addresses";
const resolution = "test/features/probing/resolution.test.ts";
const names = "test/features/probing/names.test.ts";
const changes = `${names} > after 100,000 changes`;
const renewed = "test/core/usage/renewed.test.ts";
const client = "test/core/upstream/http1/client.test.ts > an engine at one of its name's addresses";

export const ofNames: readonly Mutant[] = [
  {
    name: "a name may come to lead to this machine",
    file: "src/features/probing/resolution.ts",
    find: "rules.isOwn ? found : found.filter((address) => !isOwnAddress(address))",
    replace: "found",
    caughtBy: [resolution],
    rule,
  },
  {
    name: "an address of this machine is connected to, whatever the name says",
    file: "src/core/upstream/http1/dial.ts",
    find: "return addressesOf(host, async () => [address]);",
    replace: "return [address];",
    caughtBy: [client],
    rule,
  },
  {
    name: "a name server that fails takes the addresses away",
    file: "src/features/probing/resolution.ts",
    find: 'return { ...before, problem: "failed" };',
    replace: 'return { ...unresolved, problem: "failed" };',
    caughtBy: [resolution],
    rule,
  },
  {
    name: "one answer without addresses takes them away",
    file: "src/features/probing/resolution.ts",
    find: "now_ms - emptySince_ms < empty_kept_ms",
    replace: "false",
    caughtBy: [resolution],
    rule,
  },
  {
    name: "a name without addresses keeps those of before for ever",
    file: "src/features/probing/resolution.ts",
    find: "now_ms - emptySince_ms < empty_kept_ms",
    replace: "true",
    caughtBy: [resolution],
    rule,
  },
  {
    name: "a name has as many engines as it likes",
    file: "src/features/probing/resolution.ts",
    find: "allowed.slice(0, rules.addresses_max)",
    replace: "allowed",
    caughtBy: [resolution],
    rule,
  },
  {
    name: "a family that cannot be told loses its addresses",
    file: "src/features/probing/resolution.ts",
    find: "[...new Set([...addresses, ...kept])]",
    replace: "[...new Set(addresses)]",
    caughtBy: [resolution],
    rule,
  },
  {
    name: "an answer is remembered by the resolver for as long as it holds",
    file: "src/features/probing/resolve.ts",
    find: "  const resolver = new Resolver({ timeout: answer_ms, tries });\n  resolver.setServers([...servers]);\n",
    replace:
      "  const all = globalThis as { kept?: Resolver };\n  all.kept ??= new Resolver({ timeout: answer_ms, tries });\n  const resolver = all.kept;\n  resolver.setServers([...servers]);\n",
    caughtBy: ["test/features/probing/resolve.test.ts"],
    rule,
  },
  {
    name: "a name server that is slow is asked twice at a time",
    file: "src/features/probing/names.ts",
    find: "name.asking ??= ask(name)",
    replace: "name.asking = ask(name)",
    caughtBy: [names],
    rule,
  },
  {
    name: "a reload comes into force before its new names are known",
    file: "src/features/probing/names.ts",
    find: "if (asking.length > 0) await Promise.race(",
    replace: "if (asking.length > 0) void Promise.race(",
    caughtBy: [names],
    rule,
  },
  {
    name: "each address has the whole weight of the route",
    file: "src/core/routing/replicas.ts",
    find: "weight: route.weight / all.length",
    replace: "weight: route.weight",
    caughtBy: [names],
    rule,
  },
  {
    name: "breakers of addresses that are gone are kept",
    file: "src/core/routing/health.ts",
    find: "if (!engines.has(engineIn(identity))) known.delete(identity);",
    replace: "if (!engines.has(identity)) void known;",
    caughtBy: [names],
    rule,
  },
  {
    name: "the load of addresses that are gone is kept",
    file: "src/core/routing/choose.ts",
    find: "places.delete(identity);",
    replace: "void places;",
    caughtBy: [changes],
    rule,
  },
  {
    name: "what runs at an address that is gone is no longer counted",
    file: "src/core/routing/choose.ts",
    find: "if (requests === 0 && !engines.has(engineIn(identity)))",
    replace: "if (requests >= 0 && !engines.has(engineIn(identity)))",
    caughtBy: [names],
    rule,
  },
  {
    name: "the rooms of addresses that are gone are kept",
    file: "src/core/routing/queues.ts",
    find: "known.delete(identity);",
    replace: "void known;",
    caughtBy: [changes],
    rule,
  },
  {
    name: "attempts at addresses that are gone are told for ever",
    file: "src/features/telemetry/tallies.ts",
    find: "known.delete(key);",
    replace: "void known;",
    caughtBy: [changes],
    rule,
  },
  {
    name: "the client remembers each address for ever",
    file: "src/core/upstream/http1/client.ts",
    find: "if (pool.idle.size === 0 && pool.used_ms < now - idle_ms) forgetPool(pool);",
    replace: "",
    caughtBy: [client],
    rule,
  },
  {
    name: "a request on its way asks an address that is gone",
    file: "src/core/usage/route-order.ts",
    find: "if (routes === this.#routes) return;",
    replace: "return;",
    caughtBy: [renewed],
    rule,
  },
  {
    name: "who waits is not told that the name leads elsewhere",
    file: "src/core/usage/route-order.ts",
    find: "replicas.watch(() => waiting.renew(this.#routesOf(stage)))",
    replace: "replicas.watch(() => {})",
    caughtBy: [renewed],
    rule,
  },
  {
    name: "an engine is checked without its key",
    file: "src/core/upstream/send.ts",
    find: "...codec.headers(upstream.apiKey), ",
    replace: "",
    caughtBy: ["test/features/probing/engine-checks.test.ts > a path that is protected"],
    rule: "docs/routing.md, Health",
  },
];
