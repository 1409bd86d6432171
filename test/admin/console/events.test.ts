/** The pages treat an error at the end of an event stream as a failure, not as data. */
import { expect, test } from "bun:test";
import { answersIn, eventsIn } from "../../../console/core/events.ts";
import { encodeSse } from "../../../src/core/sse/decode.ts";

const streamOf = (text: string) => new Response(text).body!;

test("the event `error` of a followed stream is a failure in the server's words, after the answers before it", async () => {
  const error = { message: "The node is about to stop.", code: "overloaded", request_id: "r1" };
  const body = streamOf(
    encodeSse({ event: "fleet", data: '{"nodes":1}' }) +
      encodeSse({ event: "fleet", data: '{"nodes":2}' }) +
      encodeSse({ event: "error", data: JSON.stringify({ error }) }),
  );
  const answers: unknown[] = [];
  const read = async () => {
    for await (const answer of answersIn(body)) answers.push(answer);
  };
  await expect(read()).rejects.toMatchObject({
    message: error.message,
    code: "overloaded",
    requestId: "r1",
    status: 0,
  });
  expect(answers).toEqual([{ nodes: 1 }, { nodes: 2 }]);
});

test("the name of an event is that of its own frame alone", async () => {
  const body = streamOf("event: error\n\ndata: 1\n\n: beat\n\nevent: b\r\ndata: 2\r\ndata: 3\r\n\r\n");
  expect(await Array.fromAsync(eventsIn(body))).toEqual([{ data: "1" }, { event: "b", data: "2\n3" }]);
});
