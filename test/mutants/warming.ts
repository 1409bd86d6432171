import type { Mutant } from "./mutant.ts";

const rule = "docs/design/runtime.md, Warming up";
const moments = "test/node/warm-up.test.ts";

export const warming: Mutant[] = [
  {
    name: "a node waits for its warming, however long that takes",
    file: "src/node/warm-up.ts",
    find: "await Promise.race([served(), ended]);",
    replace: "await served();",
    caughtBy: [`${moments} > waits no longer`],
    rule,
  },
  {
    name: "a node warms up though it has requests",
    file: "src/node/warm-up.ts",
    find: "const goesOn = () => isIdle() && !stopped.aborted;",
    replace: "const goesOn = () => !stopped.aborted;",
    caughtBy: [`${moments} > does nothing while`],
    rule,
  },
];
