// Ten tasks in the console in a real browser, by mouse and by keyboard alone: at most four clicks in any, and no typed ID.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { launchBrowser, noBrowser } from "./chromium.ts";
import { type Company, startCompany } from "./company.ts";
import { clicks_max, performed, tasks } from "./tasks.ts";

setDefaultTimeout(120_000);

const id = /[0-9a-f]{8}/;

describe.skipIf(noBrowser !== null)(`ten tasks in the console${noBrowser ? `: ${noBrowser}` : ""}`, () => {
  let company: Company;
  let browser: Awaited<ReturnType<typeof launchBrowser>>;

  beforeAll(async () => {
    [company, browser] = await Promise.all([startCompany(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await company?.close();
  });

  for (const task of tasks) {
    test(`${task.name}: at most ${clicks_max} clicks`, async () => {
      const done = await performed(task, { company, browser, by: "mouse", looksAtPages: true });
      expect(done.problems).toEqual([]);
      expect(done.clicks).toBeLessThanOrEqual(clicks_max);
      expect(done.filled.filter(({ text }) => id.test(text))).toEqual([]);
    });

    test(`${task.name}: by keyboard alone, and the focus is seen all the way`, async () => {
      const done = await performed(task, { company, browser, by: "keyboard" });
      expect(done.problems).toEqual([]);
    });
  }
});
