// `npm run console:check`: every page of the console, for each role, in light and dark, at 320 and 1440 pixels, in a real
// browser. It prints each page that axe, the content security policy or the log of the browser has something to say about.
// With `--commit`, as CI runs it, it leaves out one of the four looks, which the commit chooses.

import { parseArgs } from "node:util";
import { launchBrowser, noBrowser, openTab } from "../test/admin/console/chromium.ts";
import { pathsOf, roles, signInAs, startConsoleNode } from "../test/admin/console/node.ts";
import { commitNumber } from "./commit-number.ts";

const looks = [
  { theme: "light", width: 320 },
  { theme: "light", width: 1440 },
  { theme: "dark", width: 320 },
  { theme: "dark", width: 1440 },
] as const;

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const { values } = parseArgs({ options: { commit: { type: "boolean", default: false } } });
  const left = values.commit ? commitNumber() % looks.length : null;
  const chosen = looks.filter((_, index) => index !== left);
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
  await browser.close();
  await node[Symbol.asyncDispose]();
  for (const problem of problems) console.log(problem);
  console.log(`${pages} pages, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

await main();
