/**
 * The page leaves links to its own fragments to the browser, which moves the focus, so that "Skip to the page" works.
 */
import { expect, test } from "bun:test";
import { staysOn } from "../../../console/core/link.ts";

const here = new URL("https://sluice/requests?state=failed");

test.each([
  ["#main", true],
  ["?state=failed#other", true],
  ["/requests?state=open#main", false],
  ["/keys#main", false],
  ["/requests", false],
  ["", false],
])("a link to '%s' stays on the page: %p", (written, stays) => {
  expect(staysOn(new URL(written, here), here)).toBe(stays);
});
