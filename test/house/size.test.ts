/** The size of the core is limited; the sizes of the other groups of modules are only printed. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import sizes from "./sizes.json";

const code = /^\s*(?!\/\/|\/?\*|--)\S/;
const linesIn = (path: string) =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => code.test(line)).length;

/** The lines of code of each group of modules, without blank lines and comments. */
function measured(): Map<string, number> {
  const found = new Map<string, number>();
  for (const path of ["src", "db"].flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,sql}`).scanSync()])) {
    const group = /^src\/(\w+)\//.exec(path)?.[1] ?? (path.startsWith("db/") ? "db" : "entry");
    found.set(group, (found.get(group) ?? 0) + linesIn(path));
  }
  return found;
}

test("the core is not larger than its limit, and the limit is near", () => {
  const found = measured();
  const all = [...found.values()].reduce((sum, lines) => sum + lines, 0);
  console.log(`lines: ${all} (${[...found].map(([group, lines]) => `${group} ${lines}`).join(", ")})`);
  const core = found.get("core") ?? 0;
  expect(core).toBeLessThanOrEqual(sizes.core);
  expect(sizes.core - core).toBeLessThan(400);
});

test("a comment and a blank are no lines, and code beside a comment is one", () => {
  expect(["", "  // why", " * more", "/** a */", "-- sql"].some((line) => code.test(line))).toBe(false);
  expect(["a(); // why", "  }", "select 1 -- one"].every((line) => code.test(line))).toBe(true);
});
