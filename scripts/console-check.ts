// `npm run console:check`: opens every page of the console, for each role, in light and dark, at 320 and 1440 pixels,
// in a real browser. Prints each page for which axe, the content security policy or the browser's log reports a
// problem, and the duration of the first page with a network delay of 200 ms.
//
// With `--commit`, as CI runs it, it checks two of the four combinations of theme and width, which include both themes
// and both widths; two successive commits check all four.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { launchBrowser, noBrowser, openTab } from "../test/admin/console/chromium.ts";
import { firstPage_ms } from "../test/admin/console/first-page.ts";
import { type ConsoleNode, pathsOf, roles, signInAs, startConsoleNode } from "../test/admin/console/node.ts";
import { commitNumber } from "./commit-number.ts";

const looks = [
  { theme: "light", width: 320 },
  { theme: "light", width: 1440 },
  { theme: "dark", width: 320 },
  { theme: "dark", width: 1440 },
] as const;
const [lightNarrow, lightWide, darkNarrow, darkWide] = looks;
const pairs = [
  [lightNarrow, darkWide],
  [lightWide, darkNarrow],
];

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const { values } = parseArgs({ options: { commit: { type: "boolean", default: false } } });
  const chosen = values.commit ? pairs[commitNumber() % pairs.length]! : looks;
  const [node, browser] = await Promise.all([startConsoleNode(), launchBrowser()]);
  let pages = 0;
  const problems: string[] = [];
  for (const role of roles) {
    const paths = await pathsOf(node, role);
    for (const { theme, width } of chosen) {
      const tab = await openTab(node.url, { theme, width }, browser);
      await signInAs(tab, node, role);
      for (const path of paths) {
        await tab.visit(path);
        const overflow = await tab.overflow_px();
        const found = [...(await tab.axeProblems()), ...tab.found.splice(0)];
        if (overflow > 0) found.push(`${overflow} px wider than the window`);
        problems.push(...found.map((one) => `${role} ${theme} ${width} ${path}: ${one}`));
        pages += 1;
      }
      await tab.context.close();
    }
  }
  await printFirstPages(node, browser);
  await browser.close();
  await node[Symbol.asyncDispose]();
  for (const problem of problems) console.log(problem);
  console.log(`${pages} pages, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

const delay_ms = 200;
const turns = 5;

async function printFirstPages(node: ConsoleNode, browser: Awaited<ReturnType<typeof launchBrowser>>): Promise<void> {
  for (const role of ["admin", "lead", "member"] as const) {
    const tab = await openTab(node.url, { theme: "light", width: 1440 }, browser);
    await signInAs(tab, node, role);
    const took: number[] = [];
    for (let turn = 0; turn < turns; turn++) took.push(await firstPage_ms(tab, delay_ms));
    const [fastest, usual] = [0, Math.floor(turns / 2)].map((at) => took.toSorted((a, b) => a - b)[at]!.toFixed(0));
    await tab.context.close();
    console.log(
      `first page of ${role} at ${delay_ms} ms of delay: ${usual} ms (${fastest} at best), at a load of ${loadavg()[0]!.toFixed(1)}`,
    );
  }
}

await main();
