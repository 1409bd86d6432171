// `npm run pictures`: pictures of the console for the README and docs, in docs/pictures. A node with the simulator runs for
// them, with requests going on, so that there is something to see. `-- FOLDER` makes pictures of every page, as an
// administrator and as a member see them, in light and dark and on a narrow screen, in that folder: for whoever looks.

import { mkdirSync } from "node:fs";
import { launchBrowser, noBrowser, openTab } from "../test/admin/console/chromium.ts";
import { startCompany } from "../test/admin/console/company.ts";
import { type ConsoleNode, pathsOf, signInAs, startConsoleNode } from "../test/admin/console/node.ts";

const folder = "docs/pictures";
const models = ["meta-llama/llama-3.1-8b-instruct", "qwen/qwen3-32b", "qwen/qwen3-coder"];
const traffic_ms = 12_000;
const between_ms = 150;

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const every = process.argv[2];
  mkdirSync(every ?? folder, { recursive: true });
  const [node, browser] = await Promise.all([startConsoleNode(), launchBrowser()]);
  await company(node);
  const ended = traffic(node);
  if (every !== undefined) await everyPage(node, browser, every);
  else await documented(node, browser);
  await ended;
  await browser.close();
  await node[Symbol.asyncDispose]();
}

type Browser = Awaited<ReturnType<typeof launchBrowser>>;

async function everyPage(node: ConsoleNode, browser: Browser, place: string): Promise<void> {
  for (const role of ["admin", "member"] as const) {
    const paths = [...(await pathsOf(node, role)), ...(role === "admin" ? ["/organizations/acme"] : [])];
    for (const [theme, width] of [
      ["light", 1440],
      ["dark", 1440],
      ["light", 320],
      ["dark", 320],
    ] as const) {
      const tab = await openTab(node.url, { theme, width }, browser);
      await tab.page.goto(node.url);
      await tab.page.waitForSelector("h1");
      await tab.page.screenshot({ path: `${place}/sign-in-${theme}-${width}.png` });
      await signInAs(tab, node, role);
      for (const path of paths) {
        await tab.visit(path);
        const name = path.replaceAll(/[^a-z]+/g, "-").slice(0, 40);
        await tab.page.screenshot({ path: `${place}/${role}${name}-${theme}-${width}.png`, fullPage: true });
      }
      await tab.context.close();
    }
  }
}

async function documented(node: ConsoleNode, browser: Browser): Promise<void> {
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
    // Spend is worth a look where there are people and weeks of it.
    const [url, token] = name === "usage" ? [busy.url, busy.token] : [node.url, node.tokens.admin];
    const tab = await openTab(url, { theme, width: 1200 }, browser);
    await tab.page.setViewportSize({ width: 1200, height: name === "usage" ? 900 : 720 });
    await tab.signIn(token);
    await tab.visit(path);
    // The strips of the first page need some moments to show.
    await Bun.sleep(wait_ms);
    await tab.page.screenshot({ path: `${folder}/console-${name}.png` });
    await tab.context.close();
  }
  await busy.close();
  console.log(`${shots.length} pictures in ${folder}`);
}

const day = (back: number) => new Date(Date.now() + back * 86_400_000).toISOString().slice(0, 10);

/** An organization with teams and keys, and two that are near a limit. */
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
