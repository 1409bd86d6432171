/**
 * A webhook's host name is looked up within the time that the webhook may take, and never leads to an address of the
 * internal network.
 */
import { expect, test } from "bun:test";
import { sendWebhook } from "../../../src/features/notices/webhook.ts";

const notice = { url: "https://hooks.example/notices", body: "{}", headers: {} };
const sent = (look: (host: string) => Promise<string[]>) =>
  sendWebhook(notice, { allowPrivate: false, wait_ms: 50 }, look);

test("a name server that never answers costs no more than the webhook's time", async () => {
  expect(await sent(() => new Promise(() => {}))).toBe("it did not answer within 0.05 s");
});

test("a name that cannot be found, or that leads inside by any of its addresses, is not called", async () => {
  expect(await sent(() => Promise.reject(new Error("no such name")))).toBe("it cannot be reached: no such name");
  for (const addresses of [["10.0.0.1"], ["203.0.112.1", "127.0.0.1"], ["::1"], []])
    expect(await sent(async () => addresses)).toBe("its name leads to an address that is not public");
});
