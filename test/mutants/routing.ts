// What chooses an engine is rewritten with the routing issue, and its tests come with it.

import type { Mutant } from "./mutant.ts";

const skip = "the choice of an engine has no tests of its own before the routing issue";

export const routing: Mutant[] = [
  {
    name: "the worst priority is served first",
    file: "src/routing/choose.ts",
    find: "Math.min(...routes.map((route) => route.priority))",
    replace: "Math.max(...routes.map((route) => route.priority))",
    caughtBy: [],
    rule: "docs/design/service.md, The catalog",
    skip,
  },
  {
    name: "weights do not count",
    file: "src/routing/choose.ts",
    find: "    left -= route.weight;\n",
    replace: "    left -= 1;\n",
    caughtBy: [],
    rule: "docs/design/service.md, The catalog",
    skip,
  },
  {
    name: "requests of one conversation go to any engine",
    file: "src/routing/open.ts",
    find: "request.cacheKey === undefined ? Math.random() : affinity(request.cacheKey)",
    replace: "Math.random()",
    caughtBy: [],
    rule: "docs/design/service.md, The catalog",
    skip,
  },
];
