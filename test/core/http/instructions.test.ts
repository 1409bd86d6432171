/** System text in the middle of a conversation, for engines whose chat template accepts it at the beginning only. */
import { afterAll, expect, test } from "bun:test";
import { model, startService } from "../../harness/engine.ts";

const service = await startService({ route: ", instructions: head" });
afterAll(() => service.stop(), 60_000);

const turns = [
  { role: "user", content: "one" },
  { role: "assistant", content: "two" },
  { role: "system", content: "Be kind." },
  { role: "user", content: "three" },
];

test.each<[string, object]>([
  ["/v1/chat/completions", { messages: [{ role: "system", content: "Be brief." }, ...turns] }],
  ["/v1/messages", { system: "Be brief.", messages: turns, max_tokens: 100 }],
  ["/v1/responses", { instructions: "Be brief.", input: turns }],
])("%s: what stands at the head stays there, the rest is told in the user's turn, marked", async (path, body) => {
  const response = await service.post(path, { model, ...body });
  expect(response.status).toBe(200);
  await response.text();
  const { messages } = service.engine.requests.at(-1)!.body as { messages: { role: string; content: unknown }[] };
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  expect(messages[0]?.content).toBe("Be brief.");
  expect(JSON.stringify(messages[3]?.content)).toMatch(/<system>\\n+Be kind\.\\n+<\/system>.*three/);
});
