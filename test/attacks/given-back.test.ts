// A node returns the memory of large bodies to the system, even if no other program needs memory.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../harness/until.ts";
import { filled, mib, paths } from "./body.ts";
import { type AttackedNode, startAttackedNode } from "./node.ts";
import { resident_bytes } from "./process.ts";
import { chatWith } from "./talk.ts";

setDefaultTimeout(120_000);

/** The total size of request bodies that a key may have in flight: less than sixteen bodies of 4 MiB. */
const share_bytes = 48 * mib;

let node: AttackedNode;
beforeAll(async () => {
  node = await startAttackedNode({ limits: `{ key_in_flight_bytes_max: ${share_bytes} }` });
});
afterAll(async () => {
  await node?.stop();
});

test("after three bodies of 30 MiB, within seconds", async () => {
  const { target } = node;
  const before_bytes = resident_bytes(target.pid);
  const headers = { authorization: `Bearer ${target.key}`, "content-type": "application/json" };
  // A single character beyond Latin-1 doubles the memory of the whole text.
  const content = `${filled("hello world ", 30 * mib - 1000)}€`;
  const body = JSON.stringify({ model: target.model, max_tokens: 10, messages: [{ role: "user", content }] });
  for (let count = 0; count < 3; count++) {
    const answer = await fetch(target.url + paths.chat, { method: "POST", headers, body });
    expect(answer.status).toBe(200);
    await answer.text();
  }
  // The runtime keeps the last request in memory until the next request.
  for (let count = 0; count < 2; count++) await (await chatWith(target, { model: target.model })).text();
  await until(() => resident_bytes(target.pid) < before_bytes + 32 * mib, 5_000, "the memory");
});

test("while the streams that large bodies asked for still run", async () => {
  const { target } = node;
  await (await chatWith(target, { model: target.model })).text();
  const before_bytes = resident_bytes(target.pid);
  const content = filled("hello world ", 4 * mib);
  const asking = { model: target.endlessModel, stream: true, messages: [{ role: "user", content }] };
  const streams: Response[] = [];
  for (let count = 0; count < 16; count++) {
    streams.push(await chatWith(target, asking));
    expect(streams.at(-1)!.status).toBe(200);
  }
  await until(() => resident_bytes(target.pid) < before_bytes + 96 * mib, 20_000, "the memory");
  await Promise.all(streams.map(({ body }) => body?.cancel().catch(() => {})));
});
