// Ten tasks in the console in a real browser, by mouse and by keyboard alone: each takes at most four clicks, and no ID is
// typed.
import { expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, browserForTests, describeInBrowser } from "./browser-group.ts";

import { type Company, startCompany } from "./company.ts";
import { clicks_max, performed, tasks } from "./tasks.ts";

setDefaultTimeout(120_000);

const id = /[0-9a-f]{8}/;

describeInBrowser("ten tasks in the console", () => {
  let company: Company;
  let browser: Browser;

  browserForTests(startCompany, (...opened) => ([company, browser] = opened));

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
