import type { Mutant } from "./mutant.ts";

const budget = "test/http/memory.test.ts";
const held = "test/attacks/held-bodies.test.ts";
const rule = "docs/design/service.md, Memory in flight";

const bodyRule = "docs/design/service.md, Cost before trust";

export const memory: Mutant[] = [
  {
    name: "what large bodies leave behind is not collected",
    file: "src/serve.ts",
    find: "collect: fullGC",
    replace: "collect: () => Bun.gc(false)",
    caughtBy: ["test/attacks/given-back.test.ts"],
    rule,
  },
  {
    name: "small bodies that end are collected",
    file: "src/http/leftovers.ts",
    find: "if (bytes >= large_bytes) left_bytes",
    replace: "left_bytes",
    caughtBy: ["test/http/leftovers.test.ts"],
    rule,
  },
  {
    name: "every large body is collected at once, however long it takes",
    file: "src/http/leftovers.ts",
    find: "if (mayCollect()) collectNow();",
    replace: "if (bytes > 0) collectNow();",
    caughtBy: ["test/http/leftovers.test.ts"],
    rule,
  },
  {
    name: "a string is cut between the halves of a character",
    file: "src/protocol/json-pieces.ts",
    find: "return isTrailing ? at - 1 : at;",
    replace: "return at;",
    caughtBy: ["test/protocol/json-pieces.test.ts"],
    rule: bodyRule,
  },
  {
    name: "a long name is taken for a value",
    file: "src/protocol/json-steps.ts",
    find: "return top.isArray || top.colon >= Math.max(top.from, top.comma);",
    replace: "return true;",
    caughtBy: ["test/protocol/json-steps.test.ts"],
    rule: bodyRule,
  },
  {
    name: "a control character passes in a long string",
    file: "src/protocol/json-string.ts",
    find: "if (byte < 0x20) throw",
    replace: "if (byte < 0) throw",
    caughtBy: ["test/protocol/json-steps.test.ts"],
    rule: bodyRule,
  },
  {
    name: "a key has no share of the memory",
    file: "src/http/memory.ts",
    find: 'if (ofKey > own && ofKey + bytes > key_bytes_max) return "key";',
    replace: "",
    caughtBy: [budget, held],
    rule,
  },
  {
    name: "a node has no budget of memory",
    file: "src/http/memory.ts",
    find: 'if (this.#bytes + bytes > node_bytes_max) return "node";',
    replace: "",
    caughtBy: [budget],
    rule,
  },
  {
    name: "who is alone is refused where the process is full",
    file: "src/http/memory.ts",
    find: "if (this.#bytes === own) return null;",
    replace: "",
    caughtBy: [budget],
    rule,
  },
  {
    name: "what a request held stays reserved after it",
    file: "src/http/memory.ts",
    find: "this.#hold(-bytes);",
    replace: "",
    caughtBy: [budget],
    rule,
  },
  {
    name: "a running request holds twice what it grows to",
    file: "src/http/memory.ts",
    find: "const more = bytes - this.#bytes;",
    replace: "const more = bytes;",
    caughtBy: [budget],
    rule,
  },
  {
    name: "a process that is full is collected for every request",
    file: "src/http/pressure.ts",
    find: "if (now_ms() - collected_ms >= collect_ms) {",
    replace: "if (now_ms() > collected_ms) {",
    caughtBy: [budget],
    rule,
  },
  {
    name: "a stream's answer is made, and its body is still held",
    file: "src/http/call.ts",
    find: "this.#memory?.[Symbol.dispose]();",
    replace: "",
    caughtBy: [`${held} > a stream holds its body to its end`],
    rule,
  },
  {
    name: "the last descriptors are for anybody",
    file: "src/http/serve-operation.ts",
    find: "    if (scope !== null) requireDescriptors(dependencies);\n",
    replace: "",
    caughtBy: ["test/attacks/connections.test.ts > where descriptors run out"],
    rule: "docs/design/service.md, Connections",
  },
];
