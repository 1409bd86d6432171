// Makes screenshots of every page of the console, for people to look at: a company of 30 people with six weeks of
// requests, as a member, its administrator and an operator see it, on a desktop and on a phone, in light and dark. The
// printed table has what can be measured: errors in the browser's log, page length and width, and texts that do not
// fit.

import Table from "cli-table3";
import { type launchBrowser, openTab, type Tab } from "../../test/admin/console/chromium.ts";
import { type Company, companyPaths, startCompany } from "../../test/admin/console/company.ts";
import { measured, phone } from "../../test/admin/console/measured.ts";
import { type Role, signInAs } from "../../test/admin/console/node.ts";

export interface Chosen {
  folder: string;
  /** Texts that select pages: those whose path contains one of them. Empty for all pages. */
  words: string[];
  roles: readonly Role[];
  widths: readonly number[];
  themes: readonly ("light" | "dark")[];
}

type Row = [
  page: string,
  role: string,
  width: string,
  height_px: string,
  errors: string,
  overflow_px: string,
  cut: string,
];

type Browser = Awaited<ReturnType<typeof launchBrowser>>;

export async function everyPage(browser: Browser, chosen: Chosen): Promise<void> {
  const company = await startCompany();
  const requests = new AbortController();
  const ended = traffic(company, requests.signal);
  const rows: Row[] = [];
  for (const role of chosen.roles)
    for (const width of chosen.widths)
      for (const theme of chosen.themes)
        rows.push(...(await pagesOf(browser, company, { role, width, theme }, chosen)));
  requests.abort();
  await ended;
  await company.close();
  const head = ["page", "role", "window", "height, px", "errors", "wider, px", "texts that do not fit"];
  const table = new Table({ head, style: { head: [], border: [] }, wordWrap: true });
  table.push(...rows);
  console.log(table.toString());
  console.log(`${rows.length} pictures in ${chosen.folder}`);
}

/** Makes screenshots of the sign-in page, and of every page that the role sees after it. */
async function pagesOf(browser: Browser, company: Company, look: Look, { folder, words }: Chosen): Promise<Row[]> {
  const { role, width, theme } = look;
  const tab = await openTab(company.url, { theme, width }, browser);
  await tab.page.setViewportSize({ width, height: width === phone.width ? phone.height : 900 });
  const rows: Row[] = [];
  const taken = async (path: string) => {
    await tab.page.screenshot({ path: `${folder}/${nameOf(role, path)}-${width}-${theme}.png`, fullPage: true });
    rows.push(await rowOf(tab, { path, ...look }));
  };
  const isWanted = (path: string) => words.length === 0 || words.some((word) => path.includes(word));
  if (isWanted("/sign-in")) {
    await tab.page.goto(company.url);
    await tab.page.getByRole("link", { name: /^Sign in with / }).waitFor();
    await taken("/sign-in");
  }
  await signInAs(tab, company, role);
  for (const path of (await companyPaths(company, role)).filter(isWanted)) {
    await tab.visit(path);
    await taken(path);
  }
  await tab.context.close();
  return rows;
}

interface Look {
  role: Role;
  width: number;
  theme: "light" | "dark";
}

interface Seen extends Look {
  path: string;
}

async function rowOf(tab: Tab, { path, role, width, theme }: Seen): Promise<Row> {
  const { height_px, overflow_px, cut } = await measured(tab);
  const errors = tab.found.splice(0);
  return [path, role, `${width} ${theme}`, `${height_px}`, errors.join("\n"), `${overflow_px}`, cut.join("\n")];
}

/** The name of a page's screenshot, without the IDs in the path, which differ from run to run. */
const nameOf = (role: Role, path: string) =>
  `${role}${path.replaceAll(/[a-z]{2,4}_[0-9a-f]{32}/g, "one").replaceAll(/[^a-z0-9]+/g, "-")}`.replace(/-$/, "");

const between_ms = 700;

/** Sends requests until the signal, so that the pages about running requests show some. */
async function traffic({ sluice, employees }: Company, signal: AbortSignal): Promise<void> {
  const running: Promise<unknown>[] = [];
  for (let count = 0; !signal.aborted; count += 1) {
    const content = `[simulator: tps=40 tokens=200] ${"Say what a sluice is for. ".repeat((count % 20) + 1)}`;
    const body = { model: "qwen/qwen3-coder", max_tokens: 400, stream: true, messages: [{ role: "user", content }] };
    const { key } = employees[count % employees.length]!;
    running.push(sluice.post("/v1/chat/completions", body, { key }).then((one) => one.text()));
    await Bun.sleep(between_ms);
  }
  await Promise.allSettled(running);
}
