// The packed release before this one is upgraded to the current tree, and back, behind a balancer and under load: no stream
// is cut, and the ledger's totals are right. The old release is built from its commit, so this runs only in `npm run
// test:deep`, and only if that commit exists.

import { expect, test } from "bun:test";
import { executableOf, NoReleaseBefore, type Release, releaseBefore } from "../../scripts/release/before.ts";
import { startBalancer } from "../../scripts/rolling/balancer.ts";
import { startFleet } from "../../scripts/rolling/fleet.ts";
import { differences, roll } from "../../scripts/rolling/roll.ts";
import { isDeep } from "../harness/depth.ts";
import { program } from "../harness/sluice.ts";

const minutes_max = 8;
const load = { streams: 100, requests_per_second: 20, stream_s: 8, settle_ms: 5000 };
/** The share of requests that may fail, since a busy machine may be late for them; a stream that began is never cut. */
const failed_share_max = 0.02;

function before(): Release | null {
  try {
    return releaseBefore();
  } catch (reason) {
    if (!(reason instanceof NoReleaseBefore)) throw reason;
    console.log(`The upgrade is not tried. ${reason.message}`);
    return null;
  }
}

const release = isDeep ? before() : null;

test.skipIf(release === null)(
  "a fleet of the release before is upgraded and taken back under 100 streams, of which none is cut",
  async () => {
    const old = [await executableOf(release!)];
    const drain = { drain_delay_ms: 5000, drain_ms: 25_000 };
    const fleet = await startFleet({ count: 3, workers: "1", words: old, ...drain });
    try {
      const ports = fleet.nodes.map(({ port }) => port);
      const balancer = await startBalancer("haproxy", ports);
      try {
        for (const [name, words] of Object.entries({ upgrade: program, rollback: old })) {
          const { tally, took_ms } = await roll(fleet, { url: balancer.url, words, ...load, tell: console.log });
          console.log(`${name} from or to ${release!.version} in ${(took_ms / 1000).toFixed(0)} s: ${told(tally)}`);
          expect(tally.streams).toBeGreaterThan(load.streams);
          expect(tally.cut, tally.problems.join("\n")).toBe(0);
          expect(tally.failed, tally.problems.join("\n")).toBeLessThan(
            (tally.streams + tally.requests) * failed_share_max,
          );
        }
        expect(await differences(fleet, program)).toBe(0);
      } finally {
        await balancer.stop();
      }
    } finally {
      await fleet.stop();
    }
  },
  minutes_max * 60_000,
);

function told({ streams, cut, requests, failed, silence_ms_max }: Awaited<ReturnType<typeof roll>>["tally"]): string {
  const silence = `longest silence ${silence_ms_max.toFixed(0)} ms`;
  return `${streams} streams, ${cut} cut; ${requests} requests; ${failed} failed; ${silence}`;
}
