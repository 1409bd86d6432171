/**
 * The published schema of sluice.yaml equals the rules that the code checks, and docs/configuration.md and
 * docs/security.md name all of its fields.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withTables } from "../../scripts/settings-tables.ts";
import { schemaText } from "../../src/config/settings/file.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { variables } from "../../src/config/settings/variables.ts";
import { configured, root } from "./reading.ts";

/** The schema as parsed from the published file. */
const schema: Shape = JSON.parse(schemaText());
const documentation = readFileSync(join(root, "docs", "configuration.md"), "utf8");

describe("contract/sluice.schema.json", () => {
  test("is what the code checks (write it anew: bun scripts/schema.ts)", () => {
    expect(readFileSync(join(root, "contract/sluice.schema.json"), "utf8")).toBe(schemaText());
  });

  test("describes every field, so that an editor can", () => {
    for (const [name, field] of fields(schema)) {
      expect([name, typeof field.description === "string" || field.items !== undefined]).toEqual([name, true]);
    }
  });
});

describe("docs/configuration.md", () => {
  test("names every field of sluice.yaml", () => {
    for (const [name] of fields(schema)) expect(documentation).toContain(`\`${name}\``);
  });

  test("has the tables that the rows make (write them anew: bun scripts/schema.ts)", () => {
    expect(documentation).toBe(withTables(documentation));
    const missing = Object.keys(sections).filter((name) => !documentation.includes(`<!--settings:${name}-->`));
    expect(missing).toEqual([]);
    expect(documentation).toContain("| `PORT` | 8080 (0–65535) |");
    expect(documentation).toContain("| `heartbeat_ms` | 10000 (10–10000) |");
    expect(documentation).toContain("| `first_part_ms` | 120000 (10–86400000) |");
  });

  test("shows a default that is a list", () => {
    expect(withTables("<!--settings:identity.issuers-->\n<!--end-->")).toContain(
      "| `scopes` | `openid`, `profile`, `email`, `offline_access` (1–32) |",
    );
  });

  test("shows the default plans with their limits", () => {
    const rows = [...documentation.matchAll(/^\| `(starter|pro|unlimited)`.*$/gm)].map(([row]) =>
      row
        .split("|")
        .slice(2, -1)
        .map((cell) => cell.trim().replaceAll(",", "")),
    );
    const plans = [...configured(null).catalog.plans.values()];
    // The file has limits in units of money, the plan has them in nanos (billionths).
    const shown = (name: string, limit: unknown) =>
      limit === null ? "" : String(["session", "week", "month"].includes(name) ? Number(limit) / 1e9 : limit);
    const limits = plans.map(({ name: _, ...plan }) => Object.entries(plan).map(([name, limit]) => shown(name, limit)));
    expect(rows).toEqual(limits);
  });

  test("names every variable of the environment", () => {
    for (const name of variables) expect(documentation).toContain(`\`${name}\``);
  });
});

interface Shape {
  description?: string;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  items?: Shape;
}

/** Yields every named field, at every depth. */
function* fields(shape: Shape): Generator<[string, Shape]> {
  for (const [name, field] of Object.entries(shape.properties ?? {})) {
    yield [name, field];
    yield* fields(field);
  }
  for (const field of Object.values(shape.patternProperties ?? {})) yield* fields(field);
  if (shape.items) yield* fields(shape.items);
}

const page = readFileSync(join(root, "docs/security.md"), "utf8");

test("every limit of the service stands there, and no other", () => {
  const table = page.slice(page.indexOf("## What is bounded"), page.indexOf("Other bounds:"));
  const names = [...table.matchAll(/^\| (`[a-z_`, ]+`) \|/gm)].flatMap(([, cell]) =>
    cell!.replaceAll("`", "").split(", "),
  );
  expect(names.sort()).toEqual(Object.keys(sections.limits.properties).sort());
});

test("the tests that it names are there, one in every row of a bound", () => {
  const bounds = page.slice(page.indexOf("## What is bounded"), page.indexOf("## Where the parts"));
  const rows = bounds.split("\n").filter((line) => line.startsWith("| ") && !/^\| (settings|what) \|/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) {
    const file = /`(test\/\S+\.test\.ts)` \|$/.exec(row)?.[1] ?? `none in ${row}`;
    expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  }
});
