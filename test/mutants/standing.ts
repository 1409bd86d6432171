// Mutants of the read that says how much of its limits a subject has used.

import type { Mutant } from "./mutant.ts";

const read = "src/stores/postgres/standing.ts";
const law = "test/core/store/standing.test.ts > standings on postgres";
const rule = "docs/design/usage.md, Standing";

export const standing: Mutant[] = [
  {
    name: "a team that was removed keeps its limits for models",
    file: "src/stores/postgres/teams.ts",
    find: "        await tx.query(liftingModels, [uuid]);\n",
    replace: "",
    caughtBy: ["test/core/store/standing.test.ts > no longer count a team"],
    rule: "docs/limits.md, Values",
  },
  {
    name: "a share is that of the session's limit alone",
    file: read,
    find: "greatest(t.used[1] * 100.0 / l.limits[1], t.used[2] * 100.0 / l.limits[2], t.used[3] * 100.0 / l.limits[3])",
    replace: "t.used[1] * 100.0 / l.limits[1]",
    caughtBy: [`${law} narrow lists`],
    rule,
  },
  {
    name: "what has used exactly the share is left out",
    file: read,
    find: "u.percent >= ${percent}",
    replace: "u.percent > ${percent}",
    caughtBy: [`${law} narrow lists`],
    rule,
  },
  {
    name: "a key's standing is read without its team's",
    file: read,
    find: ", (3, 'team', s.team_id)",
    replace: "",
    caughtBy: [`${law} equal what admission`],
    rule,
  },
  {
    name: "the tightest limit is the first one",
    file: "src/features/telemetry/store/standing.ts",
    find: "most && most.percent >= one.percent ? most : one",
    replace: "most ?? one",
    caughtBy: [`${law} equal what admission`],
    rule,
  },
];
