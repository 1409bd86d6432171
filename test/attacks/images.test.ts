/**
 * Image URLs with which an engine would fetch from inside the network are refused in every protocol, before the request
 * reaches the engine.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { errorOf, model, type Service, startService } from "../harness/engine.ts";

setDefaultTimeout(60_000);

let service: Service;
beforeAll(async () => {
  service = await startService({ more: "images: { deny_private: true, denied_hosts: [evil.example] }" });
});
afterAll(async () => {
  await service.stop();
});

const bodies: Record<string, (url: string) => object> = {
  "/v1/chat/completions": (url) => ({
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
  }),
  "/v1/messages": (url) => ({
    max_tokens: 10,
    messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }],
  }),
  "/v1/responses": (url) => ({ input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] }),
};

test.each(Object.keys(bodies))("%s", async (path) => {
  const asked = service.engine.counts.requests;
  for (const host of ["127.1", "u:p@example.com", "10.0.0.1", "a.evil.example", "169.254.169.254"]) {
    const url = `https://${host}/a`;
    const response = await service.post(path, { model, ...bodies[path]!(url) });
    expect([url, response.status]).toEqual([url, 400]);
    const { message } =
      path === "/v1/messages"
        ? ((await response.json()) as { error: { message: string } }).error
        : await errorOf(response);
    expect(message).toContain("The URL of an image");
  }
  expect(service.engine.counts.requests).toBe(asked);
  expect((await service.post(path, { model, ...bodies[path]!("https://example.com/a.png") })).status).toBe(200);
});
