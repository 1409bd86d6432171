/** A revoked key is refused by every node within one second, with Redis up and with Redis down. */
import { expect, test } from "bun:test";
import { busyness } from "../harness/busyness.ts";
import { until } from "../harness/until.ts";
import { rigForFile } from "./file-rig.ts";
import type { Node } from "./rig.ts";

const rig = rigForFile({ nodes: 2, plan: "{}", requests_max: 1000 });

const accepts = async (node: Node, key: string) => {
  const response = await fetch(`${node.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return response.ok;
};

/**
 * Sends requests until the node refuses the key, so that the node's cache always has the key. Returns the time at which
 * the last accepted request was sent.
 */
async function lastAccepted(node: Node, key: string): Promise<number> {
  let last = 0;
  for (let now = Date.now(); await accepts(node, key); now = Date.now()) last = now;
  return last;
}

/** How many messages about revoked keys the node has received. */
async function messagesHeard(node: Node): Promise<number> {
  const text = await (await fetch(`${node.url}/metrics`)).text();
  return Number(/^key_revocation_propagation_seconds_count (\d+)/m.exec(text)?.[1] ?? 0);
}

for (const redis of ["up", "down"] as const) {
  test(`with Redis ${redis}`, async () => {
    if (redis === "down") await rig.redis.kill();
    const made = await rig.command<{ id: string; key: string }>("key", "create", "--org", "faults-0", "--name", redis);
    for (const node of rig.nodes) expect(await accepts(node, made.key)).toBeTrue();
    const heardBefore = await Promise.all(rig.nodes.map(messagesHeard));
    const lasts = rig.nodes.map((node) => lastAccepted(node, made.key));
    const { revoked_at } = await rig.command<{ revoked_at: string }>("key", "revoke", made.id);
    for (const last of lasts) expect((await last) - Date.parse(revoked_at)).toBeLessThan(1000 * busyness());
    for (const [index, node] of rig.nodes.entries())
      await until(
        async () => (await messagesHeard(node)) > heardBefore[index]!,
        5_000,
        `${node.name} to have been told`,
      );
  }, 60_000);
}
