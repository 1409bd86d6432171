// An engine that sends the same response to every request immediately: twenty tokens for an input of twelve. Prints its
// port.

import { createServer } from "node:http";

export const answer = { input_tokens: 12, output_tokens: 20 };

const usage = {
  prompt_tokens: answer.input_tokens,
  completion_tokens: answer.output_tokens,
  total_tokens: answer.input_tokens + answer.output_tokens,
};
const words = Array.from({ length: answer.output_tokens }, (_, at) => (at === 0 ? "word" : " word"));
const common = { id: "chatcmpl-1", created: 1_790_000_000, model: "governed" };
const message = { role: "assistant", content: words.join("") };
const whole = JSON.stringify({
  ...{ ...common, object: "chat.completion", usage },
  choices: [{ index: 0, message, finish_reason: "stop", logprobs: null }],
});
const event = (choices: object[], rest: object = {}) =>
  `data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices, ...rest })}\n\n`;
const streamed = [
  event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
  ...words.map((content) => event([{ index: 0, delta: { content }, finish_reason: null }])),
  event([{ index: 0, delta: {}, finish_reason: "stop" }]),
  event([], { usage }),
  "data: [DONE]\n\n",
];

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", async () => {
    const isStreamed = /"stream": ?true/.test(Buffer.concat(chunks).toString("latin1"));
    if (!isStreamed) {
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(whole) });
      return response.end(whole);
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const part of streamed) {
      response.write(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return response.end();
  });
});
server.keepAliveTimeout = 600_000;

if (process.argv[1]?.endsWith("engine.ts"))
  server.listen(0, "127.0.0.1", () => console.log((server.address() as { port: number }).port));
