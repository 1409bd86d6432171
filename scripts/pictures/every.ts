// Pictures of every page of the console, for who looks at them: of a company of 30 people with six weeks of requests, as a
// member, its administrator and an operator see them, on a desk and on a phone, in light and dark. The table has what can be
// measured: errors in the browser's log, length, width, and texts that do not fit.

import Table from "cli-table3";
import type { launchBrowser } from "../../test/admin/console/chromium.ts";
import { openTab, type Tab } from "../../test/admin/console/chromium.ts";
import { type Company, companyPaths, startCompany } from "../../test/admin/console/company.ts";
import { measured, phone } from "../../test/admin/console/measured.ts";
import { type Role, signInAs } from "../../test/admin/console/node.ts";

export interface Chosen {
  folder: string;
  /** Parts of paths; none: every page. */
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

export async function everyPage(browser: Awaited<ReturnType<typeof launchBrowser>>, chosen: Chosen): Promise<void> {
  const company = await startCompany();
  const rows: Row[] = [];
  const requests = new AbortController();
  const ended = traffic(company, requests.signal);
  let pictures = 0;
  for (const role of chosen.roles) {
    const paths = await companyPaths(company, role);
    const wanted = paths.filter(
      (path) => chosen.words.length === 0 || chosen.words.some((word) => path.includes(word)),
    );
    for (const width of chosen.widths) {
      for (const theme of chosen.themes) {
        const tab = await openTab(company.url, { theme, width }, browser);
        await tab.page.setViewportSize({ width, height: width === phone.width ? phone.height : 900 });
        await signInAs(tab, company, role);
        for (const path of wanted) {
          await tab.visit(path);
          await tab.page.screenshot({
            path: `${chosen.folder}/${nameOf(role, path)}-${width}-${theme}.png`,
            fullPage: true,
          });
          rows.push(await rowOf(tab, { path, role, width, theme }));
          pictures += 1;
        }
        await tab.context.close();
      }
    }
  }
  requests.abort();
  await ended;
  await company.close();
  const head = ["page", "role", "window", "height, px", "errors", "wider, px", "texts that do not fit"];
  const table = new Table({ head, style: { head: [], border: [] }, wordWrap: true });
  table.push(...rows);
  console.log(table.toString());
  console.log(`${pictures} pictures in ${chosen.folder}`);
}

interface Seen {
  path: string;
  role: Role;
  width: number;
  theme: string;
}

async function rowOf(tab: Tab, { path, role, width, theme }: Seen): Promise<Row> {
  const { height_px, overflow_px, cut } = await measured(tab);
  const errors = tab.found.splice(0);
  return [path, role, `${width} ${theme}`, `${height_px}`, errors.join("\n"), `${overflow_px}`, cut.join("\n")];
}

/** IDs of things differ from run to run, and are no part of a name. */
const nameOf = (role: Role, path: string) =>
  `${role}${path.replaceAll(/[a-z]{2,4}_[0-9a-f]{32}/g, "one").replaceAll(/[^a-z0-9]+/g, "-")}`.replace(/-$/, "");

const between_ms = 700;

/** So that there is something to see of what runs now. */
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
