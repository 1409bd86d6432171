/** A scan estimates the number of different names in a body, also when there are so many that some collide. */
import { expect, test } from "bun:test";
import { BodyScan } from "../../../src/core/body/scan.ts";

function namesIn(text: string): number {
  const scan = new BodyScan();
  scan.take(new TextEncoder().encode(text));
  return scan.names;
}

const listed = (count: number, name: (at: number) => string) =>
  `[${Array.from({ length: count }, (_, at) => `{"${name(at)}":0}`).join(",")}]`;

test.each([
  ["short ones", (at: number) => at.toString(36)],
  ["long ones that differ at their ends", (at: number) => `properties_of_a_service_${at}`],
  ["ones that differ in length alone", (at: number) => "n".repeat(at % 20_000)],
])("ten thousand different names are counted to a few percent: %s", (_, name) => {
  const counted = namesIn(listed(10_000, name));
  expect(counted).toBeGreaterThan(9_400);
  expect(counted).toBeLessThanOrEqual(10_000);
});

test("a name counts once, and strings that name nothing not at all", () => {
  expect(namesIn(listed(50_000, () => "role"))).toBe(1);
  expect(namesIn(`["a","b",{"c":"d"},"e"]`)).toBe(1);
});
