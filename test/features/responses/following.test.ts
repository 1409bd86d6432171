/** A client that follows a background response whose log is lost, or that is deleted, learns how the response ended. */
import { expect, test } from "bun:test";
import type { Call } from "../../../src/core/http/call.ts";
import type { HttpAnswer } from "../../../src/core/http/frame.ts";
import type { StreamedAnswer } from "../../../src/core/http/stream.ts";
import type { Fault } from "../../../src/core/inference/fault.ts";
import { getResponse } from "../../../src/features/responses/operations.ts";
import type { Kept } from "../../../src/features/responses/store/kept.ts";
import { endedRun, name, needsOf, openAnswer, waitingCall } from "../../core/http/keeping-parts.ts";

const id = `resp_${"0".repeat(32)}`;
const principal = { organization: { id: name.organizationId, keepsContent: true }, person: null };
const call = { ...waitingCall, watchClient() {} } as unknown as Call;
const begun = { id, object: "response", status: "in_progress", output: [], background: true };
const message = { type: "message", content: [{ type: "output_text", text: "Twelve geese." }] };
const frame = (type: string, more: object, number: number) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more }).slice(0, -1)},"sequence_number":${number}}\n\n`;

/**
 * The events that a follower gets of a response with this state, whose log has lost all events after the first.
 * `isDeleted`: the response was deleted after that event.
 */
async function followed(
  state: Partial<Kept>,
  isDeleted = false,
  more: { closed?: (fault?: Fault) => void; defect?: Error } = {},
): Promise<{ type: string; sequence_number: number; response: unknown }[]> {
  const kept = openAnswer({ responseId: id, body: null, response: JSON.stringify(begun), ...state });
  const log = [
    { text: '{"stream":true,"headers":{}}', isEnd: false },
    { text: frame("response.created", { response: begun }, 0), isEnd: false },
  ];
  const read = async (_: unknown, from: number) => {
    if (more.defect && from > 1) throw more.defect;
    return from < log.length ? log.slice(from) : isDeleted ? [] : "lost";
  };
  const answers = { response: async () => kept, find: async () => (isDeleted ? null : kept) };
  const receipt = () => ({ ...endedRun(5), ...(kept.state === "open" ? { endedAt: null } : {}) });
  const needs = needsOf({ answers, logs: { read } }, receipt);
  const dependencies = { ...needs, limits: { heartbeat_ms: 60_000 } } as never;
  const asked = { principal, params: { id }, query: { stream: true } } as never;
  const answer: HttpAnswer = await getResponse.handle(dependencies, call, asked);
  const text = await (await (answer as StreamedAnswer).open({ left() {}, closed() {}, ...more })).text();
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
}

test("the response's own end, with its whole output", async () => {
  for (const status of ["completed", "incomplete"]) {
    const response = JSON.stringify({ ...begun, status, output: [message] });
    const events = await followed({ state: "ended", response });
    expect(events).toMatchObject([
      { type: "response.created", sequence_number: 0 },
      { type: `response.${status}`, sequence_number: 1, response: { id, status, output: [message] } },
    ]);
  }
});

test("while the response still runs, that it can be fetched", async () => {
  const last = (await followed({})).at(-1)!;
  expect(last).toMatchObject({ type: "response.failed", sequence_number: 1 });
  const text = JSON.stringify(last);
  expect(text).toContain("Fetch the response without 'stream'");
  expect(text).not.toContain("idempotency-key");
});

test("that the response was deleted, and not that a node is gone", async () => {
  const text = JSON.stringify((await followed({}, true)).at(-1));
  expect(text).toContain("was deleted");
  expect(text).not.toContain("node");
});

test("a store that fails ends the stream as a failure, and the frame learns why, for the log", async () => {
  const defect = new Error("the store is away");
  const faults: (Fault | undefined)[] = [];
  const events = await followed({}, false, { defect, closed: (fault) => void faults.push(fault) });
  expect(events.map(({ type }) => type)).toEqual(["response.created", "response.failed"]);
  expect(faults).toMatchObject([{ code: "storage_unavailable", details: { cause: defect } }]);
});
