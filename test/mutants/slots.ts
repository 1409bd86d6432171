// Mutants of an engine's limit of concurrent requests, which all nodes share.

import type { Mutant } from "./mutant.ts";

const virtual = "test/stores/redis/engine-slots.test.ts";
const rule = "docs/routing.md, One limit for all nodes";
const script = "src/stores/redis/engine-slots.ts";
const share = "src/features/sharing/share.ts";

export const slots: Mutant[] = [
  {
    name: "the limit of an engine that a reload took away is exchanged for ever",
    file: "src/node/engines.ts",
    find: "    forget();\n    sharedLimits",
    replace: "    sharedLimits",
    caughtBy: ["test/node/engines.test.ts > an engine that a reload takes away"],
    rule,
  },
  {
    name: "a process keeps its slots although Redis has not answered for long",
    file: share,
    find: "if (!this.isApart(now_ms)) return this.#held;",
    replace: "return this.#held;",
    caughtBy: [`${virtual} > frozen`],
    rule,
  },
  {
    name: "a process that was frozen takes that for a silent Redis",
    file: share,
    find: "this.#isApart = now_ms - known_ms < slots_lease_ms;",
    replace: "this.#isApart = true;",
    caughtBy: [`${virtual} > frozen`],
    rule,
  },
  {
    name: "a silent Redis leaves each process all that it held",
    file: share,
    find: "const even = (limit: number) => Math.max(1, Math.floor(limit / this.processes));",
    replace: "const even = (limit: number) => limit;",
    caughtBy: [`${virtual} > while Redis is silent`],
    rule,
  },
  {
    name: "a process does not say in an exchange what it runs above what it holds",
    file: share,
    find: "this.#held = larger(running, this.#kept(now_ms));",
    replace: "this.#held = this.#kept(now_ms);",
    caughtBy: [`${virtual} > counts what it runs`],
    rule,
  },
  {
    name: "a process above its target takes the next request all the same",
    file: share,
    find: "this.#held = smaller(before, larger(running, this.#target));",
    replace: "",
    caughtBy: [virtual],
    rule,
  },
  {
    name: "a late exchange undoes a later one",
    file: script,
    find: "    if one.number >= number then return false end\n",
    replace: "",
    caughtBy: [`${virtual} > comes late`],
    rule,
  },
  {
    name: "slots of a silent Redis are given away when it is back",
    file: script,
    find: "for _, one in ipairs(found) do one.ends = one.ends + away end",
    replace: "",
    caughtBy: [`${virtual} > first to ask`],
    rule,
  },
  {
    name: "a Redis that has lost its data gives slots before each has said what it holds",
    file: script,
    find: "if now >= settled then",
    replace: "if true then",
    caughtBy: [virtual],
    rule,
  },
  {
    name: "the slots of a process that is gone are lost",
    file: script,
    find: "  elseif one.ends > now then all[#all + 1] = one",
    replace: "  elseif one.ends > 0 then all[#all + 1] = one",
    caughtBy: [`${virtual} > killed`],
    rule,
  },
  {
    name: "a process that came back keeps slots that others have by now",
    file: script,
    find: "local over = -math.min(0, free_in(part), free_in(nil))",
    replace: "local over = 0",
    caughtBy: [`${virtual} > frozen`],
    rule,
  },
  {
    name: "with fewer slots than processes the same ones have them always",
    file: script,
    find: "local from = limit < #all and math.floor(now / 1000) or 0",
    replace: "local from = 0",
    caughtBy: [`${virtual} > its turn`],
    rule,
  },
  {
    name: "a node that has the old limit still gives out more than the new one",
    file: script,
    find: "limit = math.min(limit, part and one.limits[part] or one.limits[1] + one.limits[2])",
    replace:
      "limit = math.max(limit == math.huge and 0 or limit, part and one.limits[part] or one.limits[1] + one.limits[2])",
    caughtBy: [`${virtual} > smallest limit`],
    rule,
  },
];
