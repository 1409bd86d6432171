// `npm run console:check`: every page of the console, for each role, in light and dark, at 320 and 1440 pixels, in a real
// browser. It prints each page that axe, the content security policy or the log of the browser has something to say about.

import { launchBrowser, noBrowser, openTab } from "../test/console/chromium.ts";
import { pathsOf, roles, signInAs, startConsoleNode } from "../test/console/node.ts";

const widths = [320, 1440];
const themes = ["light", "dark"] as const;

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const [node, browser] = await Promise.all([startConsoleNode(), launchBrowser()]);
  let pages = 0;
  const problems: string[] = [];
  for (const role of roles) {
    const paths = await pathsOf(node, role);
    for (const theme of themes) {
      for (const width of widths) {
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
  }
  await browser.close();
  await node[Symbol.asyncDispose]();
  for (const problem of problems) console.log(problem);
  console.log(`${pages} pages, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

await main();
