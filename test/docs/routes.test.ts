/** docs/protocols.md, Paths that are served, has every operation of the contract with the scope that it needs, and no other. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { contract } from "../../src/node/operations.ts";

const page = await Bun.file(join(import.meta.dir, "../../docs/protocols.md")).text();
const section = page.split("\n## Paths that are served\n")[1]?.split("\n## ")[0] ?? "";
const rows = section.split("\n").filter((line) => line.startsWith("| `"));

/** The scope in the page's row for this path; null if there is no row. */
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
