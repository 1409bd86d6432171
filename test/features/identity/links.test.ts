/** The sign-in links that open the console of a node on the user's own machine. */

import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { consoleLinks } from "../../../src/features/identity/links.ts";

const minute_ms = 60_000;

test("a link opens the console once, until ten minutes have passed", () => {
  let now_ms = 0;
  const links = consoleLinks(randomBytes, () => now_ms);
  const [first, second] = [links.create("ann"), links.create("bob")];
  now_ms = 10 * minute_ms - 1;
  expect([links.redeem(first), links.redeem(first)]).toEqual(["ann", null]);
  now_ms = 10 * minute_ms;
  expect([links.redeem(second), links.redeem("none")]).toEqual([null, null]);
});

test("of more than sixteen links the oldest opens nothing", () => {
  const links = consoleLinks(randomBytes, () => 0);
  const codes = Array.from({ length: 17 }, (_, user) => links.create(`${user}`));
  expect(codes.map((code) => links.redeem(code))).toEqual([null, ...codes.slice(1).map((_, user) => `${user + 1}`)]);
});
