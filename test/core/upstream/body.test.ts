/** No engine can make the service read an endless body. */
import { expect, test } from "bun:test";
import { readAtMost } from "../../../src/core/upstream/body.ts";

function replyOf(next: () => Uint8Array[] | null) {
  const state = { reads: 0, isDropped: false };
  const reply = {
    async read() {
      state.reads += 1;
      return next();
    },
    drop() {
      state.isDropped = true;
    },
  };
  return { state, reply };
}

test("an answer of exactly the limit is read, characters cut in the middle too", async () => {
  const bytes = [...new TextEncoder().encode("für ü")];
  const { reply } = replyOf(() => (bytes.length > 0 ? [new Uint8Array([bytes.shift()!])] : null));
  expect(await readAtMost(reply, bytes.length)).toBe("für ü");
  expect(await readAtMost(replyOf(() => null).reply, 0)).toBe("");
});

test("one that is larger is an error, and the rest of it is not read", async () => {
  const { state, reply } = replyOf(() => [new Uint8Array(10).fill(0x61)]);
  expect(readAtMost(reply, 95)).rejects.toThrow("larger than 95 bytes");
  await Bun.sleep(1);
  expect(state.isDropped).toBe(true);
  expect(state.reads).toBe(10);
});
