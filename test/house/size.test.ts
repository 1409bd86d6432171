/** Each module has a budget of lines: docs/decisions/2026-11-26-size.md. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";

/** A budget may be above its module by this share, and by 60 lines in any case. */
const slack = 0.08;
const slack_lines = 60;

const record = "docs/decisions/2026-11-26-size.md";
const budgets = new Map(
  [...readFileSync(record, "utf8").matchAll(/^\| ((?:src\/)?\w+) \| (\d+) \|/gm)].map(([, module, lines]) => [
    module!,
    Number(lines),
  ]),
);

const code = /^\s*(?!\/\/|\/?\*|--)\S/;
const linesIn = (path: string) =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => code.test(line)).length;

function sizes(): Map<string, number> {
  const found = new Map<string, number>();
  for (const path of ["src", "db"].flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,sql}`).scanSync()])) {
    const module = /^(src\/[^/]+|db)\//.exec(path)?.[1];
    if (module !== undefined) found.set(module, (found.get(module) ?? 0) + linesIn(path));
  }
  return found;
}

test("every module has a budget and keeps to it, and no budget is for nothing", () => {
  const found = sizes();
  const gone = [...budgets.keys()].filter((module) => !found.has(module));
  const problems = [...found].flatMap(([module, lines]) => {
    const budget = budgets.get(module);
    if (budget === undefined) return [`${module} has no budget. Add its row, with ${lines} lines and what it holds.`];
    const has = `${module} has ${lines} lines of code, and a budget of ${budget}.`;
    if (lines > budget) return [`${has} Write less, or raise the budget and say what for.`];
    return lines < budget * (1 - slack) - slack_lines ? [`${has} Lower the budget.`] : [];
  });
  expect({ record, problems, gone }).toEqual({ record, problems: [], gone: [] });
});

test("a comment and a blank are no lines, and code beside a comment is one", () => {
  expect(["", "  // why", " * more", "/** a */", "-- sql"].some((line) => code.test(line))).toBe(false);
  expect(["a(); // why", "  }", "select 1 -- one"].every((line) => code.test(line))).toBe(true);
});
