import { expect, test } from "bun:test";
import { documentation } from "../../../src/features/simulator/directives.ts";

test("docs/simulator.md lists every directive and quirk, in the words of the code, and no other", async () => {
  const text = await Bun.file(new URL("../../../docs/simulator.md", import.meta.url)).text();
  const tables = text.slice(text.indexOf("## Directives")).split("\n");
  const rows = tables.filter((line) => line.startsWith("| `"));
  const known = [...documentation.directives, ...documentation.quirks];
  expect(rows).toEqual(known.map((each) => `| \`${each.form}\` | ${each.means} |`));
});
