/**
 * If nobody reads an engine's bytes, the engine is held back, and the bytes are then read in small pieces. Bytes that
 * are gathered are read without loss, and wait only for more of the same answer.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { together } from "../../../../src/core/time/turns.ts";
import { Exchange } from "../../../../src/core/upstream/http1/exchange.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const forever_ms = 2 ** 30;

function exchange() {
  return held().one;
}

/**
 * A fake line, the part of a connection that an exchange (a request and its answer) needs: it knows whether its engine
 * is held back.
 */
function newLine() {
  const line = {
    isHeld: false,
    pause() {
      line.isHeld = true;
    },
    resume() {
      line.isHeld = false;
    },
    ...{ over() {}, exceeded: () => true, drop() {}, taken() {}, soon: together(), pause_ms: 0 },
  };
  return line;
}

function held() {
  const line = newLine();
  const one = new Exchange(line);
  one.received(bytes(head));
  return { one, line };
}

const kib = 1024;

async function textOf(reading: Promise<Uint8Array[] | null>): Promise<string | null> {
  const pieces = await reading;
  return pieces && Buffer.concat(pieces).toString();
}

describe("answers that one poll brings", () => {
  test("are told when all of them have come, in their order", async () => {
    const line = newLine();
    const told: string[] = [];
    const replies = ["first", "second"].map((name) => {
      const one = new Exchange(line);
      return { name, one, reply: one.replied.then(() => void told.push(name)) };
    });
    for (const { name, one } of replies) {
      one.received(bytes(head));
      await Promise.resolve();
      told.push(`${name} has come`);
    }
    await Promise.all(replies.map(({ reply }) => reply));
    expect(told).toEqual(["first has come", "second has come", "first", "second"]);
  });

  test("are told before the failure that follows at once", async () => {
    const one = exchange();
    one.fail(new Error("the engine broke off"));
    expect((await one.replied).status).toBe(200);
    await expect(one.read()).rejects.toThrow("the engine broke off");
  });
});

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
    let got = await reading;
    while (got!.length < 2 * much.length) got += (await textOf(one.read()))!;
    expect(got).toBe(much + much);
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
          // Lets readers that were woken run.
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

describe("what nobody reads", () => {
  test("holds the engine back from 64 KiB on, until all of it is read, 4 KiB at a time", async () => {
    const { one, line } = held();
    one.received(bytes(chunk("x".repeat(64 * kib))));
    expect(line.isHeld).toBe(false);
    one.received(bytes(chunk("y")));
    expect(line.isHeld).toBe(true);
    for (let count = 0; count < 16; count++) {
      expect(line.isHeld).toBe(true);
      expect(await textOf(one.read())).toBe("x".repeat(4 * kib));
    }
    expect(await textOf(one.read())).toBe("y");
    expect(line.isHeld).toBe(false);
  });

  test("is read while others do some of their work", async () => {
    const { one } = held();
    one.received(bytes(`${chunk("x".repeat(40 * kib))}0\r\n\r\n`));
    let others = 0;
    let isRead = false;
    const work = () => {
      others += 1;
      if (!isRead) setImmediate(work);
    };
    setImmediate(work);
    while ((await one.read()) !== null);
    isRead = true;
    expect(others).toBe(9);
  });

  test("is read at once, up to 64 KiB, by a reader that makes no events of it", async () => {
    const { one, line } = held();
    one.received(bytes(chunk("x".repeat(40 * kib))));
    expect(await textOf(one.read(64 * kib))).toBe("x".repeat(40 * kib));
    one.received(bytes(chunk("y".repeat(80 * kib))));
    expect([await textOf(one.read(64 * kib)), line.isHeld]).toEqual(["y".repeat(64 * kib), true]);
    // The reader chooses the size of each read separately.
    expect([await textOf(one.read()), line.isHeld]).toEqual(["y".repeat(4 * kib), true]);
    expect([await textOf(one.read(64 * kib)), line.isHeld]).toEqual(["y".repeat(12 * kib), false]);
  });

  test("is given back as it is read", async () => {
    const { one } = held();
    const received = [0, 1].map(() => bytes(chunk("x".repeat(5 * kib))));
    for (const each of received) one.received(each);
    const sizes = () => received.map(({ buffer }) => buffer.byteLength > 0);
    const seen: boolean[][] = [];
    for (let count = 0; count < 3; count++) {
      await one.read();
      seen.push(sizes());
    }
    void one.read();
    expect([...seen, sizes()]).toEqual([
      [true, true],
      [true, true],
      [false, true],
      [false, false],
    ]);
  });

  test("is the whole of it, however large its parts are", async () => {
    const sizes = fc.array(fc.integer({ min: 100, max: 40 * kib }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(sizes, sizes, async (said, receipts) => {
        const { one } = held();
        const text = said.map((size, at) => String.fromCharCode(97 + at).repeat(size));
        const wire = bytes(`${text.map(chunk).join("")}0\r\n\r\n`);
        let got = "";
        const reading = (async () => {
          for (let part = await textOf(one.read()); part !== null; part = await textOf(one.read())) got += part;
        })();
        for (let at = 0, turn = 0; at < wire.length; turn++) {
          const size = receipts[turn % receipts.length]!;
          one.received(wire.slice(at, at + size));
          at += size;
          // Every third time, lets readers that were woken run.
          if (turn % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        await reading;
        expect(got).toBe(text.join(""));
      }),
      { numRuns: 100 },
    );
  });
});

describe("what is read as it comes", () => {
  test("wakes its reader when all sockets of a poll were read, with all that they brought", async () => {
    const one = exchange();
    const reading = textOf(one.read());
    let isRead = false;
    void reading.finally(() => {
      isRead = true;
    });
    one.received(bytes(chunk("a")));
    await Promise.resolve();
    expect(isRead).toBe(false);
    one.received(bytes(chunk("b")));
    expect(await reading).toBe("ab");
  });

  test("is there in the same turn when the answer is over, or fails", async () => {
    for (const end of ["over", "failure"]) {
      const one = exchange();
      const reading = textOf(one.read());
      let text: string | null = null;
      void reading.then((read) => {
        text = read;
      });
      one.received(bytes(chunk("a")));
      if (end === "over") one.received(bytes("0\r\n\r\n"));
      else one.fail(new Error("the caller left"));
      for (let hop = 0; hop < 5; hop++) await Promise.resolve();
      expect(text).toBe("a" as never);
    }
  });
});

describe("an answer that is there as a whole", () => {
  const answered = (...parts: string[]) => {
    const one = new Exchange(newLine());
    for (const part of parts) one.received(bytes(part));
    return one;
  };
  const lengthHead = (length: number) => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`;

  test("is read once, without a wait", async () => {
    const one = answered(`${lengthHead(4)}body`);
    expect(Buffer.from(one.whole()!).toString()).toBe("body");
    expect([one.whole(), await one.read()]).toEqual([null, null]);
  });

  test.each([
    ["is not over", [head, chunk("body")], "body"],
    ["came in two pieces", [`${lengthHead(4)}bo`, "dy"], "body"],
    ["came in a large receive buffer", [`${lengthHead(5_000)}${"x".repeat(5_000)}`], "x".repeat(5_000)],
  ])("is left to `read` if it %s", async (_, parts, body) => {
    const one = answered(...parts);
    expect(one.whole()).toBeNull();
    expect(await textOf(one.read(16 * kib))).toBe(body);
  });

  test("is left to `read` if more than it came, which tells the failure", async () => {
    const one = new Exchange({ ...newLine(), exceeded: () => false });
    expect(() => one.received(bytes(`${lengthHead(4)}body and more`))).toThrow("behind the end");
    one.fail(new Error("doubtful"));
    expect(one.whole()).toBeNull();
    await expect(one.read()).rejects.toThrow("doubtful");
  });
});
