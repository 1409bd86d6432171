/**
 * README says what the code does: its links lead somewhere, its commands exist, its models are in the catalog, and it
 * names every folder of src.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defaultModels } from "../src/config/models.ts";

const root = join(import.meta.dir, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");

test("every link leads to a file", () => {
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)]
    .map((match) => match[1]!)
    .filter((link) => !link.includes("://"));
  expect(links.length).toBeGreaterThan(5);
  expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([]);
});

test("every command is one of package.json", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const named = [...readme.matchAll(/npm (?:run )?(\w[\w:]*)/g)].map((match) => match[1]!);
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});

test("every model in a snippet is in the default catalog", () => {
  const named = [...readme.matchAll(/model(?:: |=)"([^"]+)"/g)].map((match) => match[1]!);
  const known = defaultModels().map((model) => model.id);
  expect(named.length).toBe(2);
  expect(named.filter((id) => !known.includes(id))).toEqual([]);
});

test("every room is on the floor plan", () => {
  const rooms = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(
    rooms.map((room) => room.name).filter((name) => !readme.includes(` ${name}/`) && !readme.includes(`src/${name}/`)),
  ).toEqual([]);
});
