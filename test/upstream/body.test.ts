/** No engine makes us read without end. */
import { expect, test } from "bun:test";
import { readAtMost } from "../../src/upstream/body.ts";

function endless() {
  const state = { read: 0, isCancelled: false };
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      state.read += 1;
      controller.enqueue(new Uint8Array(10).fill(0x61));
    },
    cancel() {
      state.isCancelled = true;
    },
  });
  return { state, response: new Response(body) };
}

test("an answer of exactly the limit is read, characters cut in the middle too", async () => {
  const bytes = new TextEncoder().encode("für ü");
  const pieces = async function* () {
    for (const byte of bytes) yield new Uint8Array([byte]);
  };
  expect(await readAtMost(new Response(pieces()), bytes.length)).toBe("für ü");
  expect(await readAtMost(new Response(null), 0)).toBe("");
});

test("one that is larger is an error, and the rest of it is not read", async () => {
  const { state, response } = endless();
  expect(readAtMost(response, 95)).rejects.toThrow("larger than 95 bytes");
  await Bun.sleep(1);
  expect(state.isCancelled).toBe(true);
  expect(state.read).toBeLessThan(15);
});
