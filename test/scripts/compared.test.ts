import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { type Entry, pageOf, type Results, results } from "../../scripts/compared/page.ts";
import { tables } from "../../scripts/compared/tables.ts";

const page = (id: string) => `before\n<!-- compared: ${id} -->\nold\n<!-- /compared -->\nafter`;

function entry(score: number, cells: Record<string, string>): Entry {
  const how = { version: "1", made: "by hand", command: "run it", note: "", at: "2026-11-29T12:00", host: "two cores" };
  return { ...how, load: "1 to 2", cells, score };
}

describe("docs/compared.md", () => {
  test("has the tables of what was found", () => {
    const text = readFileSync("docs/compared.md", "utf8");
    expect(text).toBe(pageOf(text, JSON.parse(readFileSync(results, "utf8")) as Results));
  });

  test("says first who does best, whoever that is", () => {
    const all = { console: { sluice: entry(68, { gzip: "68 KB" }), portkey: entry(15, { gzip: "15 KB" }) } };
    const text = pageOf(page("console"), all);
    expect(text).toContain("-->\n**Best: Portkey.** Portkey 15, Sluice 68 KB.\n\n|  | gzip |");
    expect(text).toMatch(/^before\n[\s\S]*\nafter$/);
  });

  test("says who do best if several do", () => {
    const all = { console: { portkey: entry(15, {}), litellm: entry(15, {}), sluice: entry(68, {}) } };
    const best = "**Best: LiteLLM and Portkey.** LiteLLM 15, Portkey 15, Sluice 68 KB.";
    expect(pageOf(page("console"), all)).toContain(best);
  });

  test("has what is the same for all gateways in one row", () => {
    const cells = { S01: "whole", S02: "whole", S03: "an error" };
    const text = pageOf(page("failover"), { failover: { sluice: entry(1, cells), litellm: entry(2, cells) } });
    expect(text).toContain("| S01; S02 | whole | whole |\n| S03 | an error | an error |");
  });

  test("names version, date, load, how it was made and command of each row", () => {
    const text = pageOf(page("rows"), { console: { portkey: entry(15, { gzip: "15 KB" }) } });
    expect(text).toContain("| console | Portkey 1 | 2026-11-29T12:00Z, load 1 to 2 | by hand | `run it` |");
  });
});

const run = (seed: number) => ({
  ...{ seed, faults: 20, requests: 5_000, refused: 3, findings: [{ verdict: "lost", tokens: 7 }] },
});

test.each<[what: string, table: string, printed: string, cells: Record<string, string>, score: number]>([
  [
    "failing engines, with the whole answer where it differs",
    "failover",
    "s01    whole | whole | 2+0, 2+0 | pass\ns08    error after 40 words | whole | 1+0, 3+1 | safe\ns15    20 of 20 whole | | | pass\n2 pass, 1 safe\n",
    { S01: "whole", S08: "error after 40 words; whole", S15: "20 of 20 whole", passed: "2 of 3" },
    2,
  ],
  [
    "real clients, with what the client says",
    "clients",
    "A's SDK, chat: works\nB, two at once: FAILS: 500 a|b\n",
    { "A's SDK, chat": "works", "B, two at once": "**fails**: 500 a/b" },
    1,
  ],
  [
    "a console's first load",
    "console",
    "litellm: 1315.1 KB (gzip) in 38 requests; no other host\n",
    { gzip: "1315 KB", requests: "38", "other hosts": "none" },
    1315,
  ],
  [
    "conformance, over all protocols",
    "conformance",
    "chat: 40 rules kept, 1 broken, 2 unchecked\nmessages: 50 rules kept, 0 broken, 3 unchecked\n",
    { kept: "90", broken: "1", "not checked": "5" },
    90,
  ],
  [
    "crash tests, over all runs",
    "crash",
    JSON.stringify([run(1), run(21)]),
    { faults: "20 (seed 1), 20 (seed 21)", requests: "10000", lost: "2 keys, 14 tokens", doubled: "0" },
    2,
  ],
])("what a comparison prints becomes cells: of %s", (_, table, printed, cells, score) => {
  const found = tables.find(({ id }) => id === table)!.found(printed);
  expect(found.cells).toMatchObject(cells);
  expect(found.score).toBe(score);
});
