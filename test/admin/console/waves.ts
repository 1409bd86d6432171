// Counts the sequential round trips of a page, independently of the machine's speed: all requests of the browser are
// held until the page sends no more. They form one wave, and then all get their responses together.
import type { Route } from "playwright-core";
import { until } from "../../harness/until.ts";
import type { Tab } from "./chromium.ts";

/** The paths of the requests of one wave: those that a page sends before it needs any of their responses. */
export interface Wave {
  urgent: string[];
  /**
   * Low-priority requests, without which the page already shows most of its content. A browser sends them when a
   * connection is free.
   */
  low: string[];
}

/**
 * JavaScript that waits longer than Preact waits for a frame before it runs effects. It runs in the page, so the time
 * is measured by the page's event loop.
 */
const idle = "new Promise((idle) => setTimeout(idle, 60))";

/** Returns the waves of requests from `act`, which starts a navigation, until the page is complete. */
export async function wavesOf(tab: Tab, act: () => Promise<unknown>): Promise<Wave[]> {
  const held: Route[] = [];
  const low = await lowPriorities(tab);
  await tab.page.route(
    (url) => url.href.startsWith(`${tab.url}/`),
    (route) => void held.push(route),
  );
  const acted = act();
  const waves: Wave[] = [];
  // The first request is for the document, and is sent while the previous page is still shown.
  await until(() => held.length > 0, 30_000, "the request of the document");
  while (held.length > 0) {
    const routes = held.splice(0);
    const paths = routes.map((route) => route.request().url());
    waves.push({
      urgent: paths.filter((url) => !low.has(url)).map(pathOf),
      low: paths.filter((url) => low.has(url)).map(pathOf),
    });
    await Promise.all(routes.map(answered));
    await until(async () => held.length > 0 || (await isThere(tab)), 30_000, "the next wave, or all of the page");
    await quiet(tab, held);
  }
  await acted;
  await tab.page.unrouteAll({ behavior: "ignoreErrors" });
  return waves;
}

/** The path of a request, without hashes and IDs, which differ from run to run. */
const pathOf = (url: string) =>
  new URL(url).pathname.replace(/\.[a-z0-9]{8}\./, ".").replaceAll(/[a-z]{2,4}_[0-9a-f]{32}/g, "one");

/** The URLs that the page has requested with low priority so far. */
async function lowPriorities({ context, page }: Tab): Promise<ReadonlySet<string>> {
  const low = new Set<string>();
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  session.on("Network.requestWillBeSent", ({ request: { url, initialPriority } }) => {
    if (initialPriority === "Low" || initialPriority === "VeryLow") low.add(url);
  });
  return low;
}

/** Waits until the page sends no further request while the held requests have no responses. */
async function quiet({ page }: Tab, held: readonly Route[]): Promise<void> {
  for (let count = -1; count !== held.length; ) {
    count = held.length;
    await page.evaluate(idle);
  }
}

async function isThere({ page }: Tab): Promise<boolean> {
  if ((await page.locator("main h1").count()) === 0) return false;
  return (await page.locator("[aria-busy=true], .waiting").count()) === 0;
}

/**
 * Sends the response to a held request. Waits until it has arrived completely, or for a stream, which does not end,
 * until it has begun.
 */
async function answered(route: Route): Promise<void> {
  const request = route.request();
  const response = request.response();
  await route.continue();
  const begun = await response;
  if (request.headers().accept !== "text/event-stream") await begun?.finished();
}
