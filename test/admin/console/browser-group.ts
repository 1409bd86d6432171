// Starts a real browser for a group of tests, together with the node or the company whose console they open.
import { afterAll, afterEach, beforeAll, describe } from "bun:test";
import type { BrowserContextOptions } from "playwright-core";
import { type Look, launchBrowser, noBrowser, openTab, type Tab } from "./chromium.ts";

export type Browser = Awaited<ReturnType<typeof launchBrowser>>;
/** Opens a tab with a wide window and the light theme, unless `look` says otherwise. */
export type NewTab = (url: string, look?: Partial<Look>, more?: BrowserContextOptions) => Promise<Tab>;

/** A group of tests that need a real browser. If there is none, the group is skipped, and its title says why. */
export const describeInBrowser = (title: string, tests: () => void) =>
  describe.skipIf(noBrowser !== null)(`${title}${noBrowser ? `: ${noBrowser}` : ""}`, tests);

/**
 * Starts a browser, and the node or company, before the tests, and stops both after the tests. A tab that a test opens
 * is closed after the test; a tab from `opened` stays open.
 */
export function browserForTests<Started extends AsyncDisposable>(
  start: () => Promise<Started>,
  opened: (started: Started, newTab: NewTab) => unknown,
): NewTab {
  let begun: [Started, Browser] | undefined;
  const tabs: Tab[] = [];
  const newTab: NewTab = async (url, look, more) => {
    const tab = await openTab(url, { theme: "light", width: 1440, ...look }, begun![1], more);
    tabs.push(tab);
    return tab;
  };
  beforeAll(async () => {
    begun = await Promise.all([start(), launchBrowser()]);
    await opened(begun[0], newTab);
    tabs.length = 0;
  });
  afterEach(async () => {
    for (const tab of tabs.splice(0)) await tab.context.close();
  });
  afterAll(async () => {
    const [started, browser] = begun ?? [];
    await browser?.close();
    await started?.[Symbol.asyncDispose]();
  });
  return newTab;
}
