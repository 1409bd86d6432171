// `npm run pictures`: makes the screenshots of the console for the README and docs, in docs/pictures. They show a node
// with the simulator while it serves requests. `-- --all FOLDER` makes screenshots of every page in that folder
// (scripts/pictures/every.ts); texts of paths, `--role`, `--width` and `--theme` after it select some of them.

import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { launchBrowser, noBrowser, openTab } from "../test/admin/console/chromium.ts";
import { startCompany } from "../test/admin/console/company.ts";
import { phone } from "../test/admin/console/measured.ts";
import { type ConsoleNode, startConsoleNode } from "../test/admin/console/node.ts";
import { type Chosen, everyPage } from "./pictures/every.ts";

const folder = "docs/pictures";
const models = ["meta-llama/llama-3.1-8b-instruct", "qwen/qwen3-32b", "qwen/qwen3-coder"];
const traffic_ms = 12_000;
const between_ms = 150;

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const chosen = chosenPages();
  mkdirSync(chosen?.folder ?? folder, { recursive: true });
  const browser = await launchBrowser();
  if (chosen) await everyPage(browser, chosen);
  else await documented(browser);
  await browser.close();
}

function chosenPages(): Chosen | null {
  const { values, positionals: words } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "string" },
      role: { type: "string", multiple: true },
      width: { type: "string", multiple: true },
      theme: { type: "string", multiple: true },
    },
  });
  if (values.all === undefined) return null;
  return {
    folder: values.all,
    words,
    roles: among(["member", "lead", "admin"], values.role),
    widths: values.width?.map(Number) ?? [phone.width, 1440],
    themes: among(["light", "dark"], values.theme),
  };
}

/** The screenshots that the command line names; all if it names none. */
const among = <Name extends string>(all: readonly Name[], named: string[] | undefined) =>
  all.filter((one) => named?.includes(one) ?? true);

type Browser = Awaited<ReturnType<typeof launchBrowser>>;

async function documented(browser: Browser): Promise<void> {
  const node = await startConsoleNode();
  await company(node);
  const ended = traffic(node);
  const [request] = await node.sluice.json<{ id: string }[]>("request", "list", "--outcome", "completed");
  const busy = await startCompany();
  const weeks = { from: day(-14), to: day(0) };
  const shots = [
    { name: "now", path: "/", theme: "light", wait_ms: traffic_ms - 2000 },
    { name: "organization", path: "/organizations/acme", theme: "dark", wait_ms: 0 },
    {
      name: "usage",
      path: `/usage?organization=acme&by=team&${new URLSearchParams(weeks)}`,
      theme: "light",
      wait_ms: 0,
    },
    { name: "request", path: `/requests/${request!.id}`, theme: "dark", wait_ms: 0 },
    { name: "connect", path: "/connect", theme: "light", wait_ms: 0 },
  ] as const;
  for (const { name, path, theme, wait_ms } of shots) {
    // The usage page is shown for the company with many people and weeks of spend.
    const [url, token] = name === "usage" ? [busy.url, busy.token] : [node.url, node.tokens.admin];
    const tab = await openTab(url, { theme, width: 1200 }, browser);
    await tab.page.setViewportSize({ width: 1200, height: name === "usage" ? 900 : 720 });
    await tab.signIn(token);
    await tab.visit(path);
    // The small charts of the first page need a few moments until they have data.
    await Bun.sleep(wait_ms);
    await tab.page.screenshot({ path: `${folder}/console-${name}.png` });
    await tab.context.close();
  }
  await busy.close();
  await ended;
  await node[Symbol.asyncDispose]();
  console.log(`${shots.length} pictures in ${folder}`);
}

const day = (back: number) => new Date(Date.now() + back * 86_400_000).toISOString().slice(0, 10);

/** Creates an organization with teams and keys, and two organizations that have almost reached a limit. */
async function company({ sluice }: ConsoleNode): Promise<void> {
  await sluice.json("org", "create", "acme", "--name", "Acme", "--plan", "pro");
  for (const [name, week] of [
    ["research", 0.04],
    ["product", 0.008],
    ["interns", 0.0015],
  ] as const) {
    await sluice.json("team", "create", "--org", "acme", "--name", name, "--limit", `week=${week}`);
  }
  await sluice.json("plan", "create", "trial", "--limit", "session=2,week=10,month=30");
  for (const [name, nanos] of [
    ["globex", 9_700_000],
    ["initech", 8_300_000],
  ] as const) {
    await sluice.json("org", "create", name, "--plan", "trial");
    await sluice.json(
      "usage",
      "adjust",
      name,
      "--window",
      "week",
      "--amount",
      `${nanos / 1e6}`,
      "--reason",
      "a batch offline",
    );
  }
}

async function traffic({ sluice }: ConsoleNode): Promise<void> {
  const keys: string[] = [sluice.key];
  const teams = await sluice.json<{ id: string; name: string }[]>("team", "list", "--org", "acme");
  for (const { id, name } of teams) {
    const { key } = await sluice.json<{ key: string }>(
      "key",
      "create",
      "--org",
      "acme",
      "--name",
      `${name}-agents`,
      "--team",
      id,
    );
    keys.push(key);
  }
  const running: Promise<unknown>[] = [];
  const until_ms = Date.now() + traffic_ms;
  for (let count = 0; Date.now() < until_ms; count += 1) {
    const pace = count % 3 === 0 ? "[simulator: tps=40 tokens=300] " : "";
    const messages = [{ role: "user", content: pace + "Say what a sluice is for. ".repeat((count % 20) + 1) }];
    const body = { model: models[count % models.length], max_tokens: 400, stream: true, messages };
    running.push(
      sluice.post("/v1/chat/completions", body, { key: keys[count % keys.length]! }).then((one) => one.text()),
    );
    await Bun.sleep(between_ms);
  }
  await Promise.allSettled(running);
}

await main();
