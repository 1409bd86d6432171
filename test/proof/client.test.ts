// The crash test's client can tell a wait that it gave up from an answer that broke off.

import { expect, test } from "bun:test";
import { ask } from "../../proof/client.ts";

const script = { id: "one", tokens: 3, gap_ms: 1, report: "true", dies_after: null, deaths: 0 } as const;

async function asking(fetch: (request: Request) => Response | Promise<Response>) {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  const door = { url: `http://127.0.0.1:${server.port}/v1`, node: "node-1", key: "key-1", secret: "s", model: "m" };
  return await ask({ ...door, script, stream: false, leaves_after: null, deadline_ms: 200 });
}

test("one that waited as long as it would has left, as a gateway sees it", async () => {
  const seen = await asking(() => new Promise<Response>(() => {}));
  expect(seen).toMatchObject({ status: null, tokens: 0, isWhole: false, hasLeft: true });
});

test("one whose answer fails has not", async () => {
  const seen = await asking(() => Response.json({ error: {} }, { status: 502 }));
  expect(seen).toMatchObject({ status: 502, isWhole: false, hasLeft: false });
});
