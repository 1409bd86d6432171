/**
 * The faults of failover.test.ts where engines speak Messages or Responses: the spare answers in place of the first
 * engine, or the client gets a clean error.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { asks, type Seen } from "./callers.ts";
import { type Rig, startRig } from "./rig.ts";
import { canonical } from "./wall.ts";

/**
 * Faults, by the beginning of the engine's model (wall.ts): each with the number of engines that are asked, and the
 * code of the error if there is one.
 */
const faults: [name: string, asked: number, code?: string][] = [
  ...["s01", "s02", "s03", "s04", "s06", "forbidden", "html", "empty"].map((name): [string, number] => [name, 2]),
  ["s08", 1, "upstream_unavailable"],
  ["s10", 1, "upstream_unavailable"],
  ["s13", 1, "invalid_value"],
  ["ok", 1],
];

for (const protocol of ["anthropic-messages", "openai-responses"]) {
  describe(protocol, () => {
    let rig: Rig;
    const seen = new Map<string, Seen>();
    beforeAll(async () => {
      const cases = faults.map(([name]) => ({
        id: `acme/${name}`,
        routes: [
          { wall: 0, model: `${name}-first` },
          { wall: 1, model: `ok-${name}`, priority: 1 },
        ],
        ...(name === "s06" ? { timeouts: "{ first_part_spare_ms: 300 }" } : {}),
      }));
      rig = await startRig(cases, {}, "", protocol);
      for (const [name] of faults) seen.set(name, await asks(rig.sluice, "chat", `acme/${name}`, true));
    }, 120_000);
    afterAll(() => rig.stop());

    for (const [name, asked, code] of faults) {
      test(`${name}: ${code ?? "the answer"}`, () => {
        const whole = { status: 200, isComplete: true, code: null, text: canonical, outputTokens: 60 };
        expect(seen.get(name)).toMatchObject(code ? { isComplete: false, code } : whole);
        expect([rig.asked(`${name}-first`), rig.asked(`ok-${name}`)]).toEqual([1, asked - 1]);
      });
    }
  });
}
