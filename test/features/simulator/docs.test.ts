import { expect, test } from "bun:test";
import { documentation } from "../../../src/features/simulator/directives.ts";

test("docs/simulator.md lists every directive and quirk, in the words of the code, and no other", async () => {
  const text = await Bun.file(new URL("../../../docs/simulator.md", import.meta.url)).text();
  const lines = text.slice(text.indexOf("## Directives")).split("\n");
  const items = lines.filter((line) => /^- `.*`: /.test(line));
  const known = [...documentation.directives, ...documentation.quirks];
  expect(items).toEqual(known.map((each) => `- \`${each.form}\`: ${each.means}`));
});
