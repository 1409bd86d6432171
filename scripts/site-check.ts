// `npm run site:check`: builds the documentation site, checks every link and anchor in it, and opens it in a real
// browser, in light and dark. It checks axe's report, the browser's log, requests to other hosts, the pages' width, and
// the results of the search.

import { launchBrowser, noBrowser, openTab, type Tab } from "../test/admin/console/chromium.ts";
import { until } from "../test/harness/until.ts";
import { deadLinksOf, questions } from "./site/checks.ts";
import { buildSite, serveSite } from "./site.ts";

/**
 * The window sizes and themes. A narrow window shows no other colours than a wide one, so it is opened in one theme
 * only.
 */
const looks = [
  { theme: "light", width: 1440 },
  { theme: "dark", width: 1440 },
  { theme: "light", width: 320 },
] as const;
/** The paths of the pages to check: one page of each kind. */
const kinds = [
  "/",
  "/start.html",
  "/afternoon.html",
  "/configuration.html",
  "/cli.html",
  "/console.html",
  "/clients.html",
];
const more = [
  "/api/",
  "/api/inference.html",
  "/api/schemas.html",
  "/management-api/keys.html",
  "/decisions.html",
  "/design/usage.html",
  "/nowhere.html",
];
/** The number of results that the search shows without scrolling. */
const listed_max = 5;

async function main(): Promise<void> {
  const root = await buildSite();
  const problems = deadLinksOf(root);
  if (noBrowser === null) problems.push(...(await inBrowser(root)));
  else console.log(`not opened: ${noBrowser}`);
  for (const problem of problems) console.log(problem);
  console.log(`${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

async function inBrowser(root: string): Promise<string[]> {
  const [server, browser] = [serveSite(root), await launchBrowser()];
  const url = server.url.origin;
  const problems: string[] = [];
  for (const { theme, width } of looks) {
    const tab = await openTab(url, { theme, width }, browser);
    for (const path of [...kinds, ...more])
      problems.push(...(await look(tab, path)).map((one) => `${theme} ${width} ${path}: ${one}`));
    if (width === 1440) problems.push(...(await searched(tab, theme)));
    await tab.context.close();
  }
  await browser.close();
  await server.stop(true);
  return problems;
}

async function look(tab: Tab, path: string): Promise<string[]> {
  await tab.page.goto(tab.url + path, { waitUntil: "networkidle" });
  const overflow_px = await tab.overflow_px();
  const found = [...(await tab.axeProblems()), ...tab.found.splice(0)].filter((one) => !isExpected(path, one));
  return overflow_px > 0 ? [...found, `${overflow_px} px wider than the window`] : found;
}

/**
 * Whether the problem is the 404 that the browser logs for a page that the check requests although it does not exist.
 */
function isExpected(path: string, problem: string): boolean {
  return path === "/nowhere.html" && problem.startsWith("log:") && problem.includes("404");
}

async function searched(tab: Tab, theme: string): Promise<string[]> {
  const problems: string[] = [];
  await tab.page.goto(`${tab.url}/`, { waitUntil: "networkidle" });
  await tab.page.click(".VPNavBarSearch button");
  const results = tab.page.locator(".VPLocalSearchBox a.result");
  for (const [question, page] of theme === "light" ? questions : questions.slice(0, 1)) {
    await tab.page.fill(".VPLocalSearchBox input", "");
    await until(async () => (await results.count()) === 0);
    await tab.page.fill(".VPLocalSearchBox input", question);
    await until(async () => (await results.count()) > 0, 10_000, `results of: ${question}`).catch(() => undefined);
    const found = await results.evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
    const pages = [...new Set(found.map((link) => link.split("#")[0]!.replace(/\.html$/, "")))].slice(0, listed_max);
    if (!pages.includes(page))
      problems.push(`the search does not find ${page} for “${question}”, but ${pages.join(", ") || "nothing"}`);
  }
  problems.push(...(await tab.axeProblems()).map((one) => `the search, ${theme}: ${one}`));
  return problems;
}

await main();
