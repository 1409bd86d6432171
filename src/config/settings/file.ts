/** The settings of sluice.yaml as a whole. Names of settings never change: docs/design/service.md, The catalog. */
import { Model } from "./model.ts";
import { Plan } from "./plan.ts";
import { group, list, mapping, type Row, type Written } from "./row.ts";
import { sections } from "./sections.ts";
import { Upstream } from "./upstream.ts";

const named = <Value>(values: Row<Value>, maxProperties: number, description: string) =>
  mapping(
    values,
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    {
      "x-key": "must be a name: letters, digits, '.', '_' and '-', at most 63, starting with a letter or digit",
      maxProperties,
    },
    description,
  );

const { server, ...others } = sections;

export const ConfigurationFile = group(
  {
    server,
    upstreams: named(Upstream, 256, "The engines, by a name that clients do not see."),
    models: list(Model, { minItems: 1, maxItems: 1000 }, "The public models. They replace the whole default catalog."),
    plans: named(
      Plan,
      1000,
      "What organizations may use, by name. They are added to starter, pro and unlimited, or replace them.",
    ),
    ...others,
  },
  "The configuration of Sluice: engines, models, plans, and limits.",
);
export type ConfigurationFile = Written<typeof ConfigurationFile.properties>;

/** The annotations of rows that sluice.schema.json leaves out, because only Sluice and its documentation read them. */
const own = new Set(["isRequired", "absent", "applies", "variable", "x-amount", "x-gone"]);

/**
 * The text of sluice.schema.json, with which editors complete and check sluice.yaml. `sluice init` writes it next to a
 * new file.
 */
export function schemaText(): string {
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", title: "sluice.yaml", ...ConfigurationFile };
  return `${JSON.stringify(schema, published, 2)}\n`;
}

/**
 * A JSON replacer that leaves out the annotations in `own`, and the targets of links in descriptions, which lead
 * nowhere in an editor.
 */
function published(name: string, value: unknown): unknown {
  if (typeof value === "object") return value;
  if (own.has(name) || value === "") return undefined;
  return name === "description" ? String(value).replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1") : value;
}
