/**
 * Tests of the judges of stored responses (repeat-judge.ts, background-judge.ts), which clients with an idempotency key
 * or of background responses read: they object to each broken rule, and not to deviations that outages excuse.
 */
import { expect, test } from "bun:test";
import { bare, idOf } from "../../src/core/store/ids.ts";
import type { BackgroundClient, Told } from "./background-client.ts";
import { objectionsToBackground } from "./background-judge.ts";
import { protocols } from "./protocols.ts";
import { type Answer, type Client, cutWords, endOf, unreadWords } from "./repeat-client.ts";
import { type Charge, objectionsTo } from "./repeat-judge.ts";
import { price } from "./rig.ts";

const calm = { mayLose: false, mayLoseLogs: false, isForgotten: false };
const [first, second] = [idOf(Bun.randomUUIDv7(), "req_"), idOf(Bun.randomUUIDv7(), "req_")];
const wanted = 3;
const frames = ["one", "two", "three"].map((text) => `data: {"choices":[{"delta":{"content":"${text}"}}]}\n\n`);
const whole = `${frames.join("")}data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;

const answer = (fields: Partial<Answer>): Answer => ({
  ...{
    node: "node 0",
    status: 200,
    requestId: first,
    replayOf: null,
    body: whole,
    end: "whole",
    ...{ took_ms: 1, at_ms: 0 },
  },
  ...fields,
});
const client = (answers: Answer[], fields: Partial<Client> = {}): Client => ({
  ...{ marker: "k000001", path: "/v1/chat/completions", stream: true, wanted, answers, harm: null },
  ...{ began_ms: 0, ended_ms: 1, isServed: true, hasGivenUp: false },
  ...fields,
});
const charge = (id: string, fields: Partial<Charge> = {}): Charge => ({
  ...{ request_id: bare(id, "req_"), recovered: false, outcome: "completed", stopped_by: null },
  ...{ input_tokens: 5, output_tokens: wanted, charged: 5 * price.input + wanted * price.output, uncharged: 0 },
  ...fields,
});
const cut = answer({ body: frames[0]!, end: "cut" });
const repeat = answer({ requestId: second, replayOf: first });
const lost = answer({ status: 400, body: "it is no longer there", end: "lost", requestId: second, replayOf: null });

test("a client that was cut off and got the rest is content", () => {
  expect(objectionsTo(client([cut, repeat]), [charge(first)])).toEqual([]);
  expect(objectionsTo(client([cut], { isServed: false, hasGivenUp: true }), [charge(first)])).toEqual([]);
});

test("a failure that was cut before its words is no other answer", () => {
  const responses = ["created", "output_text.delta"].map((type) => `event: response.${type}\ndata: {"n":1}\n\n`);
  const failing = `${responses[0]}event: response.failed\ndata: {"type":"response.failed","response":{"id":"resp_`;
  const failed = answer({ body: failing, end: "cut" });
  const rest = { ...repeat, body: responses.join("") };
  expect(objectionsTo(client([failed, rest]), [charge(first)])).toEqual([]);
  const other = answer({ body: `${responses[0]}event: response.output_text.done\nda`, end: "cut" });
  expect(objectionsTo(client([other, rest]), [charge(first)]).join()).toMatch(/differ: at byte/);
});

test("a failure that was cut at any of its bytes is no other answer", () => {
  const failing = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n`;
  for (let bytes = 1; bytes < failing.length; bytes++) {
    const failed = answer({ body: frames[0] + failing.slice(0, bytes), end: "cut" });
    const rest = answer({ requestId: second, replayOf: first, body: frames[0]!, end: "broken" });
    expect(objectionsTo(client([failed, rest]), [charge(first)])).toEqual([]);
  }
});

test("the failure that a reader writes in the place of a node that was gone is not that of the first client, once", () => {
  const failing = (words: string) => `${frames[0]}data: {"error":{"message":"${words}"}}\n\n`;
  const broken = answer({ body: failing("The engine broke off."), end: "broken" });
  const ended = answer({ requestId: second, replayOf: first, body: failing(`Its node ${cutWords}.`), end: "broken" });
  expect(objectionsTo(client([broken, ended]), [charge(first)])).toEqual([]);
  const other = { ...ended, body: failing("Something else.") };
  expect(objectionsTo(client([broken, other]), [charge(first)]).join()).toMatch(/differ/);
});

test("a repeat that could not read on is asked again, and is not the whole answer", () => {
  const body = `${frames[0]}data: {"error":{"message":"The service ${unreadWords}.","code":"storage_unavailable"}}\n\n`;
  expect(endOf({ status: 200, body }, true, protocols[0]!)).toBe("failed");
  const unread = { ...repeat, body, end: "failed" as const };
  const lossy = { mayLose: true, mayLoseLogs: false, isForgotten: false };
  expect(objectionsTo(client([cut, unread, repeat]), [charge(first)], lossy)).toEqual([]);
});

const repeats: [string, Client, Charge[], RegExp][] = [
  ["a second charge", client([cut, repeat]), [charge(first), charge(second)], /charged 2 times/],
  ["other bytes", client([cut, { ...repeat, body: whole.replace("one", "two") }]), [charge(first)], /differ/],
  ["a log that was lost for nothing", client([cut, lost]), [charge(first)], /refused for good/],
  [
    "a key that is never free",
    client([answer({ body: frames[0]!, end: "broken" })]),
    [charge(first, { charged: 0, recovered: true })],
    /its key is not free/,
  ],
];
test.each(repeats)("%s is objected to", (_, one, charges, said) => {
  expect(objectionsTo(one, charges).join()).toMatch(said);
});

test("an outage excuses a lost log, and a failover what it has forgotten; neither excuses other bytes", () => {
  const lossy = { mayLose: true, mayLoseLogs: false, isForgotten: false };
  expect(objectionsTo(client([cut, lost]), [charge(first)], lossy)).toEqual([]);
  const forgetful = { mayLose: true, mayLoseLogs: false, isForgotten: true };
  expect(objectionsTo(client([cut, repeat]), [charge(first), charge(second)], forgetful)).toEqual([]);
  const other = client([cut, { ...repeat, body: whole.replace("one", "two") }]);
  expect(objectionsTo(other, [charge(first)], forgetful).join()).toMatch(/differ/);
});

const told = (status: string, outputTokens: number | null = null, textTokens = 0): Told => ({
  ...{ node: "node 0", status, error: null, outputTokens, textTokens, at_ms: 0 },
});
const background = (all: Told[], fields: Partial<BackgroundClient> = {}): BackgroundClient => ({
  ...{ marker: "k000002", stream: false, hasKey: false, wanted, ids: ["resp_1"], told: all, isCancelled: false },
  ...{ hasGivenUp: false, began_ms: 0, ended_ms: 1 },
  ...fields,
});
const done = told("completed", wanted);

test("a background response with one end and its charge is content", () => {
  expect(objectionsToBackground(background([told("in_progress"), done, done]), [charge(first)], calm)).toEqual([]);
});

test("a background response that failed is charged for the text that was read, also where a later read has lost it", () => {
  const reads = [told("in_progress"), told("failed", null, wanted), told("failed")];
  expect(objectionsToBackground(background(reads), [charge(first)], calm)).toEqual([]);
});

test("a cancelled response whose text was lost may have said a little more than was read before", () => {
  const reads = [told("cancelled", null, 79), told("cancelled")];
  expect(objectionsToBackground(background(reads), [charge(first, { output_tokens: 83 })], calm)).toEqual([]);
});

const responses: [string, BackgroundClient, Charge[], RegExp][] = [
  ["no end", background([told("in_progress")]), [charge(first)], /no end/],
  ["an end that changes", background([done, told("failed")]), [charge(first)], /end changed/],
  ["a second charge", background([done]), [charge(first), charge(second)], /charged 2 times/],
  [
    "text of which too much is free",
    background([told("failed", null, 900)]),
    [charge(first, { recovered: true })],
    /900/,
  ],
  [
    "a cancelled text that is still there, and a charge for more",
    background([told("cancelled", null, 79)]),
    [charge(first, { output_tokens: 83 })],
    /says 79 tokens/,
  ],
  [
    "a key that a recovery charged",
    background([told("failed")], { hasKey: true }),
    [charge(first, { recovered: true })],
    /charged by a recovery/,
  ],
];
test.each(responses)("a background response with %s is objected to", (_, one, charges, said) => {
  expect(objectionsToBackground(one, charges, calm).join()).toMatch(said);
});
