/**
 * Runs the blocks of commands in README and the docs, page by page, in a clone with a running node, as a reader would.
 * A block's fence says so: `sh run`, or `sh not run: ` and a reason, which the rendered page does not show. A block
 * with neither could do anything to this machine: it is not run, and the test fails.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Block, blocksOf, commandsOf, pages } from "./blocks.ts";
import { preparations } from "./preparations.ts";
import { asksDemo, type Reader, startReader } from "./reader.ts";

setDefaultTimeout(180_000);

const blocks = pages.flatMap(blocksOf);
const run = blocks.filter(({ info }) => info === "sh run");

test("a block names its language, and one of commands is run or says why not", () => {
  // A reason with a backtick would not be valid Markdown for a fence: the end of the block would then open a new one.
  const known = /^(sh run|sh not run: [^`]{15,}|text|json|yaml|toml|ini|sql|ts|python)$/;
  expect(blocks.length).toBeGreaterThan(80);
  expect(run.length).toBeGreaterThan(25);
  const unknown = blocks.filter(({ info }) => !known.test(info));
  expect(unknown.map(({ page, line, info }) => `${page}:${line} has the fence "${info}"`)).toEqual([]);
});

const byPage = Object.entries(Object.groupBy(run, ({ page }) => page)) as [string, Block[]][];

describe.each(byPage)("%s", (page, ofPage) => {
  let reader: Reader;
  beforeAll(async () => {
    reader = await startReader();
    await preparations[page]?.(reader);
  });
  afterAll(() => reader?.[Symbol.asyncDispose]());

  test.each(ofPage)("line $line can be typed", async ({ text }) => {
    for (const command of commandsOf(text)) {
      await reader.types(command);
      if (command.startsWith("SLUICE_UPSTREAM_URL=")) expect([command, await asksDemo(reader)]).toEqual([command, 200]);
    }
  });
});
