/**
 * The log of a background response counts with its full size in its organization's stored bytes, no matter whether its
 * node or another one ended it.
 */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { currentResponse } from "../../../src/features/responses/current-response.ts";
import { Follower } from "../../../src/features/responses/follower.ts";
import type { KeptEnd } from "../../../src/features/responses/store/kept.ts";
import { endedRun, keepingOf, needsOf, openAnswer, waitingCall } from "../../core/http/keeping-parts.ts";
import { readerEnding } from "../../histories/reader-ends.ts";

const head = '{"stream":true,"headers":{}}';
const begun = { id: "resp_1", status: "in_progress", output: [] } as unknown as ResponseObject;
const text = `: ${"x".repeat(200_000)}\n\n`;

test("of one that was cancelled, by the node that wrote the log", async () => {
  const measured: number[] = [];
  const answers = {
    respond: async () => true,
    find: async () => openAnswer({ response: '{"status":"cancelled"}' }),
    end: async () => false,
    measured: async (_: string, bytes: number) => void measured.push(bytes),
    writeNote: async () => {},
  };
  const reason = new Fault("internal_error", "The client cancelled the response.");
  const call = { notes: { outcome: "cancelled", firstPart_ms: 1 }, signal: { reason }, request: { signal: {} } };
  const needs = needsOf({ answers, settings: () => ({ open_max: 1, answer_bytes_max: 1e6 }) }, () => endedRun(5));
  const keeping = keepingOf(needs, call, { isBackground: true, isStream: true });
  await keeping.begin();
  await keeping.respond(begun);
  await keeping.open({ stream: true, headers: {} });
  keeping.write(text);
  keeping.write("failed;", true);
  await keeping.end();
  await keeping[Symbol.asyncDispose]();
  expect(measured).toEqual([head.length + text.length + "failed;".length]);
});

/** The sizes that are recorded for a response whose node is gone, when a reader calls `look` on its log. */
async function ofGone(look: (needs: ReturnType<typeof needsOf>, kept: ReturnType<typeof openAnswer>) => unknown) {
  const kept = openAnswer({ responseId: "resp_1", response: JSON.stringify(begun) });
  const sizes: number[] = [];
  const answers = {
    find: async () => ({ ...kept }),
    async end(_: string, { response, bytes }: KeptEnd) {
      sizes.push(bytes);
      Object.assign(kept, { state: "ended", response });
      return true;
    },
    measured: async (_: string, bytes: number) => void sizes.push(bytes),
  };
  const log = [head, text].map((one) => ({ text: one, isEnd: false }));
  const logs = { read: async (_: unknown, from: number) => log.slice(from) };
  await look(
    needsOf({ answers, logs }, () => endedRun(0, true)),
    { ...kept },
  );
  return sizes.at(-1);
}

test("of one whose node is gone, by who fetches or follows it", async () => {
  expect(await ofGone(currentResponse)).toBe(text.length);
  const followed = await ofGone(async (needs, kept) => {
    const follower = new Follower(needs, waitingCall, kept);
    await follower.opened();
    await follower.endAs("dead", readerEnding);
  });
  expect(followed).toBe(head.length + text.length);
});
