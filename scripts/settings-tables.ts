// Generates the tables of docs/configuration.md from the rows of code that declare the settings.

import { Model } from "../src/config/settings/model.ts";
import { Plan } from "../src/config/settings/plan.ts";
import type { Row, Rows } from "../src/config/settings/row.ts";
import { sections } from "../src/config/settings/sections.ts";
import { Upstream } from "../src/config/settings/upstream.ts";
import { rows, secretVariables } from "../src/config/settings/variables.ts";
import type { Shape } from "../src/core/schema/shape.ts";

/** The page with each table replaced, between `<!--settings:NAME-->` and `<!--end-->`. */
export function withTables(page: string): string {
  return page.replaceAll(/(<!--settings:(\S+?)-->\n)[\s\S]*?(<!--end-->)/g, (_, begin, name, end) => {
    const group = groupAt(name.split("."));
    return `${begin}${table(group, name === "environment" ? "variable" : "setting")}${end}`;
  });
}

const environment: Rows = {
  ...rows,
  [secretVariables.map((name) => `${name}_FILE`).join("`, `")]: {
    description: "A file with the value, in place of the variable without `_FILE`.",
  },
};

const tables: Record<string, Shape> = {
  ...sections,
  environment: { properties: environment },
  upstreams: Upstream,
  models: Model,
  plans: Plan,
};

/** The group of settings at a path: `upstreams.check`, or `models.routes` for the items of a list. */
function groupAt([first = "", ...below]: string[]): Rows {
  const found = below.reduce((shape, name) => {
    const next = shape?.properties?.[name];
    return next?.items ?? next;
  }, tables[first]);
  if (!found?.properties) throw new Error(`no settings at ${[first, ...below].join(".")}`);
  return found.properties;
}

function table(settings: Rows, head: string): string {
  const lines = Object.entries(settings).map(([name, row]) => {
    const range = rangeOf(row);
    return [`\`${name}\``, [defaultOf(row), range && `(${range})`].filter(Boolean).join(" "), aboutOf(name, row)];
  });
  const heads = [head, "default", "what it is"];
  return [heads, heads.map(() => "---"), ...lines].map((cells) => `${rowOf(cells)}\n`).join("");
}

/** A row of a Markdown table. An empty cell consists of one blank. */
function rowOf(cells: string[]): string {
  return cells.every((cell) => cell === "---")
    ? `|${cells.join("|")}|`
    : `|${cells.map((cell) => (cell ? ` ${cell} ` : " ")).join("|")}|`;
}

function defaultOf(row: Row): string {
  if (row.isRequired) return "required";
  if (row.absent) return row.absent;
  if (Array.isArray(row.default) && row.default.length > 0) return row.default.map((one) => `\`${one}\``).join(", ");
  if (row.default === undefined || typeof row.default === "object") return "";
  return String(row.default);
}

function rangeOf(row: Shape): string {
  if (row.anyOf)
    return row.anyOf
      .map(rangeOf)
      .filter((range) => range !== "")
      .join(", ");
  if (row.enum) return row.enum.map((name) => `\`${name}\``).join(", ");
  if (row.minimum !== undefined) return `${row.minimum}–${row.maximum}`;
  if (row.type === "array" && row.minItems) return `${row.minItems}–${row.maxItems}`;
  return row.maxItems || row.maxProperties ? `at most ${row.maxItems ?? row.maxProperties}` : "";
}

/**
 * The description of a setting. For an environment variable that overrides a setting of the file, it is only the name
 * of that setting, which has a row of its own.
 */
function aboutOf(name: string, row: Row): string {
  const section = Object.entries<{ properties: Rows }>(sections).find(([, { properties }]) =>
    Object.values(properties).some(({ variable }) => variable === name),
  );
  const setting = Object.entries(section?.[1].properties ?? {}).find(([, { variable }]) => variable === name);
  if (section && setting) return `Overrides [\`${section[0]}.${setting[0]}\`](#${section[0]}) of the file.`;
  const own = row.variable && name !== row.variable ? ` \`${row.variable}\` overrides it.` : "";
  return `${row.description}${own}`;
}
