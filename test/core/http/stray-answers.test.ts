/**
 * A whole service before an engine that sends a second, unrequested answer behind the first: how an operator learns of
 * it.
 */
import { afterAll, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { model, says, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";

/** The number of requests on each connection; the list's length is the number of connections. */
const requests: number[] = [];
const sockets: Socket[] = [];
const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});
const whole = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`;

const engine = createServer((socket) => {
  const number = sockets.push(socket) - 1;
  requests[number] = 0;
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (head < 0 || text.length < head + 4 + length) return;
    text = "";
    requests[number]! += 1;
    socket.write(whole);
  });
});
await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
const engineUrl = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`;
const service = await startService({ engineUrl, upstream: "reuse: organization" });
afterAll(async () => {
  await service.stop();
  for (const socket of sockets) socket.destroy();
  engine.close();
}, 60_000);

test("connections are an organization's, and after a stray answer nobody's; the log and a metric say so", async () => {
  const members = [await newMember(service, "pro"), await newMember(service, "pro")];
  const ask = async (who: number) => {
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${members[who]!.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: says("") }),
    });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("hello")]);
  };
  for (const who of [0, 1, 0, 1]) await ask(who);
  expect(requests).toEqual([2, 2]);

  sockets[0]!.write(whole);
  await until(() => service.stderr().includes('"upstream_stray_answer"'), 10_000, "the log line");
  expect(await (await fetch(`${service.url}/metrics`)).text()).toMatch(/^upstream_stray_answer_total\{.*\} 1$/m);
  for (const who of [0, 1, 0, 1]) await ask(who);
  expect(requests).toEqual([2, 2, 1, 1, 1, 1]);
}, 60_000);
