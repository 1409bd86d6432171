/** An answer that is gathered loses nothing, and waits for nothing but more of itself. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Exchange } from "../../../src/upstream/http1/exchange.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const forever_ms = 2 ** 30;

function exchange() {
  const line = { pause() {}, resume() {}, over() {}, drop() {} };
  const one = new Exchange(line);
  one.received(bytes(head));
  return one;
}

async function textOf(reading: Promise<Uint8Array[] | null>): Promise<string | null> {
  const pieces = await reading;
  return pieces && Buffer.concat(pieces).toString();
}

describe("what is gathered", () => {
  test("is read together when its time is over, and the reader waits until then", async () => {
    const one = exchange();
    one.gather(20);
    const begun_ms = performance.now();
    const reading = textOf(one.read());
    for (const word of ["a", "b", "c"]) one.received(bytes(chunk(word)));
    expect(await reading).toBe("abc");
    expect(performance.now() - begun_ms).toBeGreaterThanOrEqual(19);
    one.received(bytes(chunk("d")));
    expect(await textOf(one.read())).toBe("d");
  });

  test("is read at once when the answer is over", async () => {
    const one = exchange();
    one.gather(forever_ms);
    const reading = textOf(one.read());
    one.received(bytes(chunk("a")));
    one.received(bytes(`${chunk("b")}0\r\n\r\n`));
    expect(await reading).toBe("ab");
    expect(await one.read()).toBeNull();
  });

  test("is read before the failure that ends it, whether somebody waits or not", async () => {
    for (const isWaiting of [true, false]) {
      const one = exchange();
      one.gather(forever_ms);
      const waiting = isWaiting ? textOf(one.read()) : null;
      one.received(bytes(chunk("a")));
      one.received(bytes(chunk("b")));
      one.fail(new Error("the caller left"));
      expect(await (waiting ?? textOf(one.read()))).toBe("ab");
      await expect(one.read()).rejects.toThrow("the caller left");
    }
  });

  test("is read at once when it is much", async () => {
    const one = exchange();
    one.gather(forever_ms);
    const reading = textOf(one.read());
    const much = "x".repeat(40 * 1024);
    one.received(bytes(chunk(much)));
    one.received(bytes(chunk(much)));
    expect(await reading).toBe(much + much);
  });

  test("is the whole of it, however it is cut, and whenever it is read", async () => {
    const cuts = fc.array(fc.record({ size: fc.nat(40), isRead: fc.boolean() }), { maxLength: 30 });
    const texts = fc.array(fc.string({ minLength: 1, unit: "grapheme-ascii" }));
    await fc.assert(
      fc.asyncProperty(texts, cuts, fc.constantFrom(0, forever_ms), async (said, plan, gather_ms) => {
        const one = exchange();
        one.gather(gather_ms);
        const wire = bytes(`${said.map(chunk).join("")}0\r\n\r\n`);
        let got = "";
        let reading: Promise<void> | null = null;
        const read = async () => {
          const text = await textOf(one.read());
          got += text ?? "";
          reading = null;
        };
        let at = 0;
        for (const { size, isRead } of plan) {
          if (isRead) reading ??= read();
          one.received(wire.subarray(at, at + size));
          at += size;
          // Whoever was woken has its turn.
          await new Promise((resolve) => setImmediate(resolve));
          if (at >= wire.length) break;
        }
        if (at < wire.length) one.received(wire.subarray(at));
        await reading;
        await read();
        expect(got).toBe(said.join(""));
      }),
    );
  });
});
