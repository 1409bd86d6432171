/** docs/operating.md names every metric and every event of the log, and no other. */
import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startSluice } from "../../harness/sluice.ts";

const root = join(import.meta.dir, "../../..");
const page = readFileSync(join(root, "docs/operating.md"), "utf8");
/** The names that begin each row or item below a heading of the page, each with the text that follows it. */
const rowsUnder = (heading: string) =>
  [
    ...page
      .split(`\n${heading}\n`)[1]!
      .split(/\n##+ /)[0]!
      .matchAll(/^[|-] (`\w+`(?:, `\w+`)*)(?: \||:) (.*?)(?: \||$)/gm),
  ].flatMap(([, names, second]) =>
    names!
      .replaceAll("`", "")
      .split(", ")
      .map((name) => [name, second!] as const),
  );

/** The type of a metric, derived from its name and labels by the page's rule. */
const typeOf = (name: string, labels: string) =>
  name.endsWith("_total") ? "counter" : labels.includes("`le`") ? "histogram" : "gauge";

const service = await startSluice();
afterAll(() => service.stop(), 60_000);

test("every metric stands on the page with its type, and each has its help", async () => {
  const text = await (await service.fetch("/metrics")).text();
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  const written = rowsUnder("## Metrics").map(([name, labels]) => `${name} ${typeOf(name, labels)}`);
  expect(written.sort()).toEqual(types.sort());
  expect([...text.matchAll(/^# HELP \w+ \S.+\.$/gm)]).toHaveLength(types.length);
});

test("every event of the log stands on the page with its level", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const source = files.map((name) => readFileSync(join(root, "src", name), "utf8")).join("\n");
  const told = [...source.matchAll(/\bevent\(\s*"(info|warn|error)",\s*"(\w+)"/g)].map(
    ([, level, name]) => `${name} ${level}`,
  );
  const outages = [...source.matchAll(/\boutage\("(\w+)"\)/g)].map(([, name]) => `${name} warn`);
  const written = Object.entries({ Errors: "error", Warnings: "warn", Information: "info" }).flatMap(
    ([heading, level]) => rowsUnder(`### ${heading}`).map(([name]) => `${name} ${level}`),
  );
  expect(written.sort()).toEqual([...new Set([...told, ...outages])].sort());
});
