// Measures the first page of the console in a real browser on a slow network.
import type { Tab } from "./chromium.ts";

/** JavaScript that measures the time from the start of the navigation until the page has all its data. */
const whole_ms = `new Promise((over) => {
  const look = () => {
    const isThere = document.querySelector("main h1") && !document.querySelector("[aria-busy=true], .waiting");
    if (isThere) over(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})`;

/**
 * The time to the complete first page for a signed-in user without a cache, if each request takes `delay_ms` longer
 * than on this machine.
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
