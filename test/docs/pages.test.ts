/** Checks the docs' statements about routes, kinds of models and money. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { contract } from "../../src/node/operations.ts";
import { configured } from "../config/reading.ts";
import { blocksOf } from "./blocks.ts";

const page = await Bun.file(join(import.meta.dir, "../../docs/protocols.md")).text();
const section = page.split("\n## Paths that are served\n")[1]?.split("\n## ")[0] ?? "";
const rows = section.split("\n").filter((line) => line.startsWith("| `"));

/** The scope in the page's table row for this path; null if there is no row. */
function scopeWritten(method: string, path: string): string | null {
  const row = rows.find((line) => {
    const routes = line.split("|")[1] ?? "";
    return routes.includes(`${path}\``) && routes.includes(method);
  });
  return row?.split("|")[2]?.trim() ?? null;
}

test.each(contract.map(({ method, path, scope }) => [`${method.toUpperCase()} ${path}`, scope] as const))(
  "the table of routes has %s",
  (route, scope) => {
    const [method, path] = route.split(" ") as [string, string];
    const written = scope === null ? "none" : scope === "any" ? "any valid key" : `\`${scope}\``;
    expect(scopeWritten(method, path)).toBe(written);
  },
);

test("the table of routes has no other path of an SDK", () => {
  const written = [...section.matchAll(/`((?:GET|POST|DELETE) \/v\d[^`]*)`/g)].map(([, route]) => route!);
  const routes = contract.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect(written.filter((route) => !routes.includes(route))).toEqual([]);
});

test("the example of models for embeddings, rerank and completions is read as it stands", () => {
  const [example] = blocksOf("docs/engines.md").filter(({ text }) => text.includes("kind: embedding"));
  const models = [...configured(example!.text).catalog.models.values()];
  expect(models.map(({ kind }) => kind)).toEqual(["embedding", "rerank", "completion"]);
});

test("the example of a second engine is read as it stands, and its model has a route to each", () => {
  const [example] = blocksOf("docs/engines.md").filter(({ text }) => text.includes("gpu-2:"));
  const [model] = configured(example!.text).catalog.models.values();
  expect(model!.routes.map(({ upstream }) => upstream.name)).toEqual(["gpu-1", "gpu-2"]);
});

const root = join(import.meta.dir, "../..");
const pages = ["README.md", "contract/*.json", "docs/*.md", "docs/design/*.md"].flatMap((pattern) =>
  [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort(),
);

/** Phrases in which the words unit and nano mean something else: lengths of text, files of systemd, names of models. */
const allowed = [
  /UTF-16 code units?/gi,
  /code units?/gi,
  /systemd units?/gi,
  /\bThe unit (listens|runs)\b/g,
  /\bWe ran the unit under systemd\b/g,
  /\ba unit's `TasksMax=`/g,
  /price_per_million_units/g,
  /[\w./-]*nano-9b[\w.-]*/g,
];
const counted = /\bmicro-?units?\b|\b\w*_units?\b|\bunits?\b|\b\w*_nanos?\b|\bnanos?\b|\b\w+Nanos\b|\b\w+Units\b/i;

test("contracts, help and pages count in money, and in no unit of their own", async () => {
  const found: string[] = [];
  for (const page of pages) {
    const lines = (await Bun.file(join(root, page)).text()).split("\n");
    for (const [index, line] of lines.entries()) {
      const rest = allowed.reduce((text, phrase) => text.replaceAll(phrase, ""), line);
      if (counted.test(rest)) found.push(`${page}:${index + 1}: ${line.trim().slice(0, 160)}`);
    }
  }
  expect(found).toEqual([]);
  expect(pages.length).toBeGreaterThan(30);
});
