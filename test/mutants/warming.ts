import type { Mutant } from "./mutant.ts";

const rule = "docs/design/runtime.md, Warming up";
const books = "test/core/store/dry-run.test.ts";
const moments = "test/node/warm-up.test.ts";

export const warming: Mutant[] = [
  {
    name: "what a dry run writes stays",
    file: "src/stores/postgres/database.ts",
    find: "    throw over;\n",
    replace: "",
    caughtBy: [books],
    rule,
  },
  {
    name: "a dry run counts among the statements",
    file: "src/stores/postgres/server.ts",
    find: "          if (!isDryRun) forwarding.answered(...answer);\n",
    replace: "          forwarding.answered(...answer);\n",
    caughtBy: [books],
    rule,
  },
  {
    name: "batches ride on a connection that is in a dry run",
    file: "src/stores/postgres/ledger-lanes.ts",
    find: "    const lane = await opened();\n    try {",
    replace: "    slot.lane ??= opened();\n    const lane = await slot.lane;\n    try {",
    caughtBy: [`${books} > takes in no batch`],
    rule,
  },
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
