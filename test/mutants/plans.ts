// Mutants of plans that are made at run time.

import type { Mutant } from "./mutant.ts";

const made = "src/stores/postgres/managed-plans.ts";
const published = "src/stores/postgres/plans.ts";
const acts = "test/core/store/plans.test.ts > postgres";
const rule = "docs/design/usage.md, Plans that change";

export const plans: Mutant[] = [
  {
    name: "a plan is removed while an organization is on it",
    file: made,
    find: 'if (use) return "in_use";',
    replace: "",
    caughtBy: [`${acts} a plan in use`],
    rule,
  },
  {
    name: "an organization gets a plan that is removed at that moment",
    file: made,
    find: "where name = $1 for key share",
    replace: "where name = $1",
    caughtBy: [`${acts} a plan in use`],
    rule,
  },
  {
    name: "a node gives somebody a plan that stands nowhere",
    file: "src/stores/postgres/organizations.ts",
    find: "isServed ? planStands :",
    replace: "isServed && false ? planStands :",
    caughtBy: ["test/core/store/plans.test.ts > pglite a plan in use"],
    rule,
  },
  {
    name: "a plan of the file is changed at run time",
    file: made,
    find: 'row?.source === "file" ? "of_file" : row',
    replace: "row",
    caughtBy: [`${acts} a plan made at run time`],
    rule,
  },
  {
    name: "a change goes over one that was not read",
    file: "src/stores/postgres/change.ts",
    find: 'typeof version === "number" && versionOf(row) !== version',
    replace: "version === -1",
    caughtBy: [`${acts} of two changes at once`],
    rule,
  },
  {
    name: "a file takes the name of a plan that was made at run time",
    file: published,
    find: "if (taken.length > 0) return { taken };",
    replace: "",
    caughtBy: [`${acts} a plan made at run time`],
    rule,
  },
  {
    name: "a publication takes plans away that were made at run time",
    file: published,
    find: "await tx.drizzle.delete(plan).where(and(ofFile, notInArray(plan.name, names)));",
    replace: "await tx.drizzle.delete(plan).where(notInArray(plan.name, names));",
    caughtBy: [`${acts} a plan made at run time`],
    rule,
  },
];
