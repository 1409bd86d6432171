/** HEAD answers as GET does, without the body: with GET's length, or with none (RFC 9110, 8.6). */
import { afterAll, describe, expect, test } from "bun:test";
import { operations } from "../../../src/node/operations.ts";
import { model, startService } from "../../harness/engine.ts";
import { rawClient, untilClosed } from "../../harness/raw-client.ts";

const service = await startService();
const answer = await service.post("/v1/responses", { model, input: "x" });
const { id } = (await answer.json()) as { id: string };
const ids = { response: id, request: answer.headers.get("x-service-request-id") ?? "" };
afterAll(() => service.stop(), 60_000);

async function asked(method: string, path: string, key: string | null) {
  const client = await rawClient(service.url);
  const credential = key === null ? "" : `authorization: Bearer ${key}\r\n`;
  await client.write(`${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${credential}\r\n`);
  const text = await client.read(untilClosed);
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [status, ...lines] = head.split("\r\n");
  const headers = new Map(lines.map((line) => line.toLowerCase().split(": ") as [string, string]));
  const body = rest.join("\r\n\r\n");
  return { status, length: headers.get("content-length"), type: headers.get("content-type"), body };
}

/** The path with the id of an existing object in it. */
function filled(path: string): string {
  if (path.includes("/responses/")) return path.replace("{id}", ids.response);
  return path.replace("{id}", path.includes("/requests/") ? ids.request : model);
}

describe("HEAD", () => {
  const described = operations.filter(({ method }) => method === "get").map(({ path }) => path);
  const others = ["/metrics", "/docs/scalar.js", "/v1/nothing", "/v1/chat/completions", "/v1/responses"];
  for (const path of [...described, ...others]) {
    test(`${path}`, async () => {
      for (const key of [service.key, null]) {
        const get = await asked("GET", filled(path), key);
        const head = await asked("HEAD", filled(path), key);
        expect(get.body).not.toBe("");
        expect(head).toMatchObject({ status: get.status, type: get.type, body: "" });
        // The length of these two paths' answers differs each time.
        if (path === "/metrics" || path === "/readyz") expect(head.length).not.toBe("0");
        else expect([get.length, undefined]).toContain(head.length);
      }
    });
  }
});
