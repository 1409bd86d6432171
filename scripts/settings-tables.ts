// The tables of docs/configuration.md, from the rows of settings: one table a group, between the marks that name it.
import type { Shape } from "../src/schema/shape.ts";
import { ConfigurationFile } from "../src/config/settings/file.ts";
import { Model } from "../src/config/settings/model.ts";
import { Plan } from "../src/config/settings/plan.ts";
import type { Row, Rows } from "../src/config/settings/row.ts";
import { sections } from "../src/config/settings/sections.ts";
import { Upstream } from "../src/config/settings/upstream.ts";
import { rows, secretVariables } from "../src/config/settings/variables.ts";

const environment: Rows = {
  ...rows,
  [secretVariables.map((name) => `${name}_FILE`).join("`, `")]: {
    type: "string",
    description: "A file that holds the value of the variable without `_FILE`. Set one of the two.",
  },
};
