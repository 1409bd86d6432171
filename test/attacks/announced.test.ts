/**
 * A newly created key works at once on every node, also on a node where a flood of unknown keys uses up all look-ups
 * that such keys may have.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Rig, startRig } from "../faults/rig.ts";
import { until } from "../harness/until.ts";
import { flood, forgedKey } from "./flood.ts";
import { metricIn, metricsOf } from "./talk.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig({ nodes: 2, plan: "{}", requests_max: 10 });
}, 120_000);
afterAll(async () => {
  await rig.stop();
}, 60_000);

test("two nodes of one Postgres, a flood on each", async () => {
  const urls = rig.nodes.map(({ url }) => url);
  const statusOf = async (url: string, key: string) =>
    (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  const heard = (url: string) =>
    metricsOf({ url, key: "" }).then((text) => metricIn(text, "key_revocation_propagation_seconds_count"));
  const floods = await Promise.all(urls.map((url) => flood(url, 50)));
  try {
    await until(
      () => floods.every(({ answered }) => (answered.get("429") ?? 0) > 0),
      60_000,
      "unknown keys to be refused",
    );
    const before = await Promise.all(urls.map(heard));
    const { key } = await rig.command<{ key: string }>("key", "create", "--org", "faults-0", "--name", "fresh");
    for (const [index, url] of urls.entries()) {
      await until(async () => (await heard(url)) > before[index]!, 10_000, "the node to have heard of the key");
      // Now and then a look-up is free for an unknown key, and then a made-up key gets a 401.
      await until(
        async () => (await statusOf(url, forgedKey())) === 429,
        20_000,
        "an unknown key to be refused unseen",
      );
      expect(await statusOf(url, key)).toBe(200);
    }
  } finally {
    for (const each of floods) each.end();
  }
}, 120_000);
