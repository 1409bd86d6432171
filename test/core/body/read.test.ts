/**
 * A request's body is checked while it arrives. A body that cannot become a valid request is refused at once, and the
 * rest of it is left to the code that reads and discards bodies.
 */
import { expect, test } from "bun:test";
import { BodyItems } from "../../../src/core/body/body-items.ts";
import { ItemCache } from "../../../src/core/body/item-cache.ts";
import { readAtOnce } from "../../../src/core/body/pieces.ts";
import { type BodyLimits, readJson } from "../../../src/core/body/read.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { laterFaultOf } from "../../harness/faults.ts";

const limits: BodyLimits = {
  body_bytes_max: 1024 * 1024,
  body_ratio_max: 100,
  body_read_ms: 2_000,
  body_depth_max: 64,
  body_values_max: 1_000,
  body_members_max: 1_000,
  body_names_max: 1_000,
};

/** A request whose body is this text and then neither continues nor ends. */
function unending(text: string) {
  let isLeft = false;
  const body = new ReadableStream<Uint8Array>({
    start: (sink) => sink.enqueue(new TextEncoder().encode(text)),
    cancel() {
      isLeft = true;
    },
  });
  const headers = { "content-type": "application/json" };
  return { request: new Request("http://localhost/", { method: "POST", headers, body }), isLeft: () => isLeft };
}

/** The refusal of a request's body, under other limits where some are named. */
function refusalOf(request: Request, other: Partial<BodyLimits> = {}, hold: (bytes: number) => void = () => {}) {
  return laterFaultOf(Promise.try(() => readJson(request, { ...limits, ...other }, hold)));
}

test.each([
  ["deeper than any request", "[".repeat(100_000), "invalid_json", "nested more than 64 levels"],
  ["of more values than the largest body may have", `[${"1,".repeat(400_000)}`, "request_too_large", "values"],
])("a body %s is refused before it ends", async (_, text, code, words) => {
  const { request } = unending(text);
  const fault = await refusalOf(request);
  expect(fault).toMatchObject({ code, message: expect.stringContaining(words) });
  expect(request.body?.locked).toBe(false);
});

test("one that does not end is refused when its time is over", async () => {
  const { request, isLeft } = unending('{"model": ');
  const fault = await refusalOf(request, { body_read_ms: 20 });
  expect(fault).toMatchObject({ code: "invalid_json", details: { headers: { connection: "close" } } });
  expect(isLeft()).toBe(true);
});

test("what a body will hold is asked for before it is held, and a refusal ends the reading", async () => {
  const asked: number[] = [];
  const { request } = unending("[1, 2");
  const hold = (bytes: number) => {
    asked.push(bytes);
    if (bytes > 0) throw new Fault("capacity_exceeded", "Busy.");
  };
  const fault = await refusalOf(request, {}, hold);
  expect(fault).toMatchObject({ code: "capacity_exceeded" });
  expect(asked).toEqual([0, 5]);
  expect(request.body?.locked).toBe(false);
});

test("so is what arrives compressed, which is held until it is unpacked", async () => {
  const packed = Bun.gzipSync(Buffer.from(JSON.stringify(Array.from({ length: 400 }, () => Math.random()))));
  const pieces = [packed.slice(0, 1_000), packed.slice(1_000, 3_000), packed.slice(3_000)];
  const body = new ReadableStream<Uint8Array>({
    async pull(sink) {
      const piece = pieces.shift();
      if (piece) sink.enqueue(piece);
      else sink.close();
      await Bun.sleep(0);
    },
  });
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const asked: number[] = [];
  await readJson(new Request("http://localhost/", { method: "POST", headers, body }), limits, (bytes) => {
    asked.push(bytes);
  });
  expect(asked.slice(0, 4)).toEqual([0, 1_000, 3_000, packed.length]);
});

test("a small body whose client breaks off is given up at once", async () => {
  const broken = { bytes: () => Promise.reject(new Error("the connection was closed")) } as unknown as Request;
  expect(await readAtOnce(broken, 60_000, () => {})).toBe("broken_off");
});

test.each([
  ["small", 0, false],
  ["scanned", 120_000, false],
  ["scanned, beside items that were seen before", 120_000, true],
])(
  "the digits of an id in the input of a call stay as they were sent, in a body that is %s",
  async (_, more, isSeen) => {
    const cache = new ItemCache(16 * 1024 * 1024, 1);
    const itemsOf = isSeen ? () => new BodyItems(cache, "one", ["messages"]) : null;
    const sent = async (id: string) => {
      const call = `{"type":"tool_use","id":"toolu_1","name":"find","input":{"id":${id}}}`;
      const said = `{"role":"user","content":"${"x".repeat(more)} and more than what is too little to keep"}`;
      const body = `{"messages":[${said},{"role":"assistant","content":[${call}]}]}`;
      const headers = { "content-type": "application/json", "content-length": `${body.length}` };
      const read = await readJson(new Request("http://node/", { method: "POST", headers, body }), limits, () => {}, {
        itemsOf,
      });
      read.keepItems();
      expect(JSON.stringify(read.value)).toBe(body);
      return read.unseen;
    };
    await sent("1790123456789012345");
    await sent("1790123456789012345");
    const unseen = await sent("1790123456789012346");
    expect(unseen?.messages?.length).toBe(isSeen ? 1 : undefined);
  },
);

/** A request whose announced body is all there. */
function announced(body: string, { bytes = Buffer.byteLength(body), type = "application/json" } = {}): Request {
  const headers = { "content-type": type, "content-length": `${bytes}` };
  return new Request("http://localhost/", { method: "POST", headers, body });
}

test("a small body that is all there is read without a wait", () => {
  const read = readJson(announced('{"a":1}'), limits, () => {}, { hasDigest: true });
  if (read instanceof Promise) throw new Error("it waited");
  const digest = new Bun.CryptoHasher("sha256").update('{"a":1}').digest("hex");
  expect(read).toMatchObject({ value: { a: 1 }, bytes: 7, own: null, digest, unseen: null });
});

test("a small body that comes later is waited for, and one that does not come is refused", async () => {
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  const late = () => {
    const headers = { "content-type": "application/json", "content-length": "7" };
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        sink = controller;
      },
    });
    return new Request("http://localhost/", { method: "POST", headers, body });
  };
  const reading = readJson(late(), limits, () => {});
  sink?.enqueue(new TextEncoder().encode('{"a":1}'));
  sink?.close();
  expect(await reading).toMatchObject({ value: { a: 1 }, bytes: 7 });
  expect(await refusalOf(late(), { body_read_ms: 20 })).toMatchObject({ code: "invalid_json" });
});

test("a body that is longer than announced is held to the limits of its own size", async () => {
  const body = `[${"1,".repeat(900)}1]`;
  const few = { body_bytes_max: 4_000, body_values_max: 500 };
  expect(await refusalOf(announced(body, { bytes: 10 }), few)).toMatchObject({ code: "request_too_large" });
});

const noRoom = new Fault("capacity_exceeded", "Busy.");
const refusing = () => {
  throw noRoom;
};

test.each([
  ["of another type", { type: "text/plain" }, refusing, "invalid_content_type"],
  ["without room", {}, refusing, "capacity_exceeded"],
  ["of no JSON", {}, () => {}, "invalid_json"],
])("a small body %s is refused for that, before what is wrong further on", (_, how, hold, code) => {
  const deep = `${"[".repeat(65)}1`;
  expect(() => readJson(announced(deep, how), limits, hold)).toThrow(expect.objectContaining({ code }));
});
