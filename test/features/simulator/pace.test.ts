import { afterAll, describe, expect, test } from "bun:test";
import { startSimulator } from "../../harness/simulator.ts";
import { until } from "../../harness/until.ts";
import { post, said, streamed } from "./ask.ts";

const simulator = await startSimulator();
afterAll(() => simulator.stop());

const last = () => simulator.requests.at(-1)!;

describe("the pace", () => {
  test("no token comes before its time: first and all, streamed or not", async () => {
    for (const stream of [true, false]) {
      const start_ms = performance.now();
      const response = await post(simulator, { ...said("[simulator: ttft=60 tps=100 tokens=11]"), stream });
      await response.text();
      expect(performance.now() - start_ms).toBeGreaterThanOrEqual(60 + 10 * 10);
    }
  });

  test("is set by options, and by a request over them", async () => {
    const slow = await startSimulator({ ttft_ms: 300, tokens_per_second: 1000 });
    const took = async (text: string) => {
      const start_ms = performance.now();
      await streamed(slow, said(text));
      return performance.now() - start_ms;
    };
    expect(await took("[simulator: tokens=21]")).toBeGreaterThanOrEqual(320);
    const isQuick = async () => (await took("[simulator: tokens=21 ttft=0 tps=0]")) < 300;
    await until(isQuick, 15_000, "an answer without the pace of the options");
    await slow.stop();
  });
});

describe("a client that leaves", () => {
  test.each([true, false])(
    "ends generation at once, and what there was until then is known (stream: %p)",
    async (stream) => {
      const leaving = new AbortController();
      const question = { ...said("[simulator: tps=200 tokens=5000]"), stream };
      const asked = post(simulator, question, { signal: leaving.signal });
      const gone = asked.then((response) => response.text()).catch(() => "gone");
      const before = simulator.counts.requests;
      await until(() => simulator.counts.requests > before || simulator.counts.active > 0);
      await Bun.sleep(100);
      leaving.abort();
      expect(await gone).toBe("gone");
      await until(() => last().ended === "client-left");
      const { tokens } = last();
      expect(tokens).toBeWithin(5, 1000);
      await Bun.sleep(30);
      expect(last().tokens).toBe(tokens);
      expect(simulator.counts.active).toBe(0);
    },
  );

  test("before the head", async () => {
    const leaving = new AbortController();
    const asked = post(simulator, said("[simulator: slow-headers=60000]"), { signal: leaving.signal });
    await until(() => simulator.counts.active === 1);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await until(() => last().ended === "client-left");
    expect(last().tokens).toBe(0);
  });
});

test("a client that does not read holds generation back", async () => {
  const body = JSON.stringify({ model: "m", stream: true, ...said("[simulator: tokens=200000]") });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`;
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: simulator.port,
    socket: {
      open: (opened) => {
        opened.pause();
        opened.write(head + body);
      },
      data: () => {},
    },
  });
  let seen = -1;
  // When no token is generated for a while, the buffers between the simulator and the client are full.
  await until(() => last().tokens > 0);
  while (seen !== last().tokens) {
    seen = last().tokens;
    await Bun.sleep(100);
  }
  expect(seen).toBeLessThan(150_000);
  expect(last().ended).toBe(null);
  socket.terminate();
  await until(() => last().ended === "client-left");
});

test("many streams at a set pace all come whole", async () => {
  const streams = 150;
  const all = Array.from({ length: streams }, (_, index) =>
    streamed(simulator, said(`${index} [simulator: ttft=50 tps=100 tokens=10]`)),
  );
  for (const each of await Promise.all(all)) {
    expect(each.data.at(-1)).toBe("[DONE]");
    expect(each.chunks.filter((chunk) => chunk.choices[0].delta.content)).toHaveLength(10);
  }
  expect(simulator.counts.active).toBe(0);
});
