import type { Mutant } from "./mutant.ts";

const choose = "test/routing/choose.test.ts";
const breaker = "test/routing/breaker.test.ts";
const budget = "test/routing/budget.test.ts";
const walk = "test/usage/walk.test.ts";

export const routing: Mutant[] = [
  {
    name: "the worst priority is served first",
    file: "src/routing/choose.ts",
    find: "Math.min(...pool.map((route) => route.priority))",
    replace: "Math.max(...pool.map((route) => route.priority))",
    caughtBy: [choose],
    rule: "docs/design/service.md, The catalog",
  },
  {
    name: "weights do not count",
    file: "src/routing/choose.ts",
    find: "    left -= route.weight;\n",
    replace: "    left -= 1;\n",
    caughtBy: [choose],
    rule: "docs/design/service.md, The catalog",
  },
  {
    name: "requests of one conversation go to any engine",
    file: "src/usage/walk.ts",
    find: "cacheKey === undefined ? this.#parts.draw() : affinity(cacheKey)",
    replace: "this.#parts.draw()",
    caughtBy: [`${walk} > one conversation`],
    rule: "docs/design/service.md, The catalog",
  },
  {
    name: "a request goes where it does not fit",
    file: "src/routing/choose.ts",
    find: "contextOf(route) >= tokens",
    replace: "contextOf(route) > 0",
    caughtBy: [choose],
    rule: "docs/design/service.md, The catalog",
  },
  {
    name: "what the client did wrong is tried everywhere",
    file: "src/routing/after.ts",
    find: '  rejected: "stop",',
    replace: '  rejected: "other",',
    caughtBy: [`${walk} > what the caller did`],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "a refusal as too long goes to any other route",
    file: "src/usage/walk.ts",
    find: "contextTokensOf(errand.model, other) > context",
    replace: "contextTokensOf(errand.model, other) > 0",
    caughtBy: [`${walk} > a request goes where`],
    rule: "docs/design/errors-and-streams.md, Context overflow",
  },
  {
    name: "a breaker never opens",
    file: "src/routing/breaker.ts",
    find: "breaker.failures + 1 < failures_max",
    replace: "breaker.failures + 1 < 1e9",
    caughtBy: [breaker],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "a request from before decides for the probe",
    file: "src/routing/breaker.ts",
    find: 'if (breaker.state === "half-open" && begun_ms < breaker.since_ms) return breaker;',
    replace: "",
    caughtBy: [breaker],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "an engine that is full is left alone as long as it says",
    file: "src/routing/breaker.ts",
    find: "Math.min(rest_ms_max, end.retryAfter_ms ?? 0)",
    replace: "(end.retryAfter_ms ?? 0)",
    caughtBy: [breaker],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "all routes of a model are kept back",
    file: "src/routing/health.ts",
    find: "return well.length > 0 ? well : routes;",
    replace: "return well;",
    caughtBy: [breaker, walk],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "an outage is multiplied",
    file: "src/routing/budget.ts",
    find: "if (retries >= Math.max(floor, requests * share)) return false;",
    replace: "",
    caughtBy: [budget],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "each attempt has the whole deadline again",
    file: "src/usage/walk.ts",
    find: "timeoutsOf(route).total_ms - (this.#parts.now_ms() - this.#started_ms)",
    replace: "timeoutsOf(route).total_ms",
    caughtBy: [`${walk} > one deadline`],
    rule: "docs/design/errors-and-streams.md, Engine failures",
  },
  {
    name: "another engine is asked after the caller has left",
    file: "src/usage/walk.ts",
    find: 'next === "stop" || this.#isOver || errand.signal.aborted',
    replace: 'next === "stop"',
    caughtBy: [`${walk} > a grant that is lost`],
    rule: "docs/design/metering.md, The life of a request",
  },
];
