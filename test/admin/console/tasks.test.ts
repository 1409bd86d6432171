// Ten tasks in the console in a real browser, by mouse and by keyboard alone: each takes at most four clicks, and no ID
// is typed. `npm run console:tasks` also runs axe on the pages of all tasks.
import { expect, setDefaultTimeout, test } from "bun:test";
import { some } from "../../harness/depth.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import type { Tab } from "./chromium.ts";
import { type Company, startQuietCompany } from "./company.ts";
import { clicks_max, performedIn, tasks } from "./tasks.ts";

setDefaultTimeout(120_000);

const id = /[0-9a-f]{8}/;
const looked = some(3, tasks);

describeInBrowser("ten tasks in the console", () => {
  let company: Company;
  let tab: Tab;

  browserForTests(startQuietCompany, async (started, newTab) => {
    company = started;
    tab = await newTab(company.url);
    await tab.signIn(company.token);
  });

  for (const task of tasks) {
    test(`${task.name}: at most ${clicks_max} clicks`, async () => {
      const done = await performedIn(tab, task, company, { by: "mouse", looksAtPages: looked.includes(task) });
      expect(done.problems).toEqual([]);
      expect(done.clicks).toBeLessThanOrEqual(clicks_max);
      expect(done.filled.filter(({ text }) => id.test(text))).toEqual([]);
    });

    test(`${task.name}: by keyboard alone, and the focus is seen all the way`, async () => {
      const done = await performedIn(tab, task, company, { by: "keyboard" });
      expect(done.problems).toEqual([]);
    });
  }
});
