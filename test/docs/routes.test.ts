/** docs/design/service.md, Routes, has every operation of the contract, and the scope that it needs. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { contract } from "../../src/node/operations.ts";

const page = await Bun.file(join(import.meta.dir, "../../docs/design/service.md")).text();
const section = page.split("\n## Routes\n")[1]?.split("\n## ")[0] ?? "";
const rows = section.split("\n").filter((line) => line.startsWith("| `"));

/** The scope in the row that names the path; null where there is none. */
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

test("docs/protocols.md lists every path of inference and of models as served, and no other", async () => {
  const protocols = await Bun.file(join(import.meta.dir, "../../docs/protocols.md")).text();
  const served = protocols.split("\n## Paths that are served\n")[1]?.split("\n## ")[0] ?? "";
  const written = [...served.matchAll(/`((?:GET|POST|DELETE) [^`]+)`/g)].map(([, route]) => route!);
  const ofSdks = contract.filter(({ tag }) => tag === "Inference" || tag === "Models");
  expect(written.toSorted()).toEqual(ofSdks.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted());
});
