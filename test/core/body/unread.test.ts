/**
 * If a request's body is still arriving when the answer is ready, its rest is read and discarded, for only a few
 * requests at a time.
 */
import { expect, test } from "bun:test";
import { unreadBodies } from "../../../src/core/body/unread.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";

/** A request whose body has begun, and continues until `end` is called. */
function sending() {
  const ended = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (sink) => sink.enqueue(new Uint8Array(10)),
    async pull(sink) {
      await ended.promise;
      sink.close();
    },
  });
  return { request: new Request("http://localhost/", { method: "POST", body }), end: ended.resolve };
}

test("so many of one address at a time and so many in all, and the next ones when those have ended", async () => {
  const limits = { bytes_max: 1_000, ms: 10_000, readings_max: 3, readings_of_one_address_max: 2 };
  const bodies = unreadBodies(limits);
  const discarded = ({ request }: ReturnType<typeof sending>, address: string) =>
    bodies.discard(request, address, new Cancellation());
  for (let round = 0; round < 2; round++) {
    const [one, two, other] = [sending(), sending(), sending()];
    const reading = [discarded(one, "10.0.0.1"), discarded(two, "10.0.0.1")];
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(await discarded(sending(), "10.0.0.1")).toBe(false);
    reading.push(discarded(other, "10.0.0.2"));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(await discarded(sending(), "10.0.0.3")).toBe(false);
    for (const { end } of [one, two, other]) end();
    expect(await Promise.all(reading)).toEqual([true, true, true]);
  }
});

test("a body that is too large, or does not end in time, is left, and its connection has to close", async () => {
  const bodies = unreadBodies({ bytes_max: 100, ms: 20, readings_max: 3, readings_of_one_address_max: 2 });
  const large = new Request("http://localhost/", { method: "POST", body: new Uint8Array(200) });
  large.headers.set("content-length", "200");
  for (const request of [large, sending().request])
    expect(await bodies.discard(request, "10.0.0.1", new Cancellation())).toBe(false);
});
