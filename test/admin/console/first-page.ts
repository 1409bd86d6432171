// The first page of the console in a real browser whose network is slow.
import type { Tab } from "./chromium.ts";

/** The time from the beginning of the navigation until the page has everything that it asked for. */
const whole_ms = `new Promise((over) => {
  const look = () => {
    const isThere = document.querySelector("main h1") && !document.querySelector("[aria-busy=true], .waiting");
    if (isThere) over(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})`;

/**
 * How long the first page takes for somebody who is signed in and has nothing in the cache, if each request takes
 * `delay_ms` longer than on this machine.
 */
export async function firstPage_ms({ context, page, url }: Tab, delay_ms: number): Promise<number> {
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  const network = { offline: false, latency: delay_ms, downloadThroughput: -1, uploadThroughput: -1 };
  await session.send("Network.emulateNetworkConditions", network);
  await page.goto(`${url}/`, { waitUntil: "commit" });
  const took_ms = await page.evaluate<number>(whole_ms);
  await session.detach();
  return took_ms;
}
