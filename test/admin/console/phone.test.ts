// Every page on a phone, for a company of 30 people with weeks of requests: the page is no wider than the phone, no
// text is cut off or overlaps another, and the page is at most four screens high, except for pages in `reasons`.
import { expect, setDefaultTimeout, test } from "bun:test";
import { some, times } from "../../harness/depth.ts";
import { browserForTests, describeInBrowser } from "./browser-group.ts";
import { type Company, companyPaths, startQuietCompany } from "./company.ts";
import { longest_px, measured, phone } from "./measured.ts";
import { signInAs } from "./node.ts";

setDefaultTimeout(times(180_000, 400_000));

/** Prefixes of the paths of pages that may be higher than four screens, each with the reason. There are none. */
const reasons: Record<string, string> = {};

describeInBrowser("on a phone", () => {
  let company: Company;

  const newTab = browserForTests(startQuietCompany, (...started) => ([company] = started));

  for (const role of some(1, ["member", "lead", "admin"] as const))
    test(`every page of ${role} fits, and is no longer than four screens`, async () => {
      const tab = await signInAs(await newTab(company.url, {}, { viewport: phone }), company, role);
      for (const path of await companyPaths(company, role)) {
        await tab.visit(path);
        const { height_px, overflow_px, cut } = await measured(tab);
        const isLong = height_px > longest_px && !Object.keys(reasons).some((begin) => path.startsWith(begin));
        expect({ path, overflow_px, cut, long_px: isLong ? height_px : null }).toEqual({
          path,
          overflow_px: 0,
          cut: [],
          long_px: null,
        });
      }
      expect(tab.found).toEqual([]);
    });

  test("a list that is too long for four screens goes on, on further pages", async () => {
    const tab = await signInAs(await newTab(company.url, {}, { viewport: phone }), company, "admin");
    await tab.visit("/organizations/acme/keys");
    await tab.page.getByRole("link", { name: /^Next / }).click();
    await tab.page.getByRole("link", { name: "First", exact: true }).waitFor();
  });
});
