/**
 * The cache of messages and tools: items that an organization sent before are not parsed and checked again. Its next
 * request has the outcome that it would have without the cache.
 */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { agentBody } from "../../../bench/agent-body.ts";
import { ItemCache } from "../../../src/core/body/item-cache.ts";
import { jsonPieces } from "../../../src/core/body/json-pieces.ts";
import { joinedBody } from "../../../src/core/body/own-bytes.ts";
import type { JsonBody } from "../../../src/core/body/read.ts";
import { Call } from "../../../src/core/http/call.ts";
import { asFault } from "../../../src/core/inference/fault.ts";
import { createChatCompletion } from "../../../src/core/operations/chat.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import { createMessage } from "../../../src/core/operations/messages.ts";
import type { Operation } from "../../../src/core/operations/operation.ts";
import { createResponse } from "../../../src/core/operations/responses.ts";
import {
  anthropicMessagesCaller,
  anthropicMessagesUpstream,
} from "../../../src/core/protocol/anthropic-messages/codec.ts";
import type { CallerCodec, UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../../src/core/protocol/openai-chat/codec.ts";
import { openaiResponsesCaller, openaiResponsesUpstream } from "../../../src/core/protocol/openai-responses/codec.ts";
import { plentifulBounds } from "../../harness/bounds.ts";
import { times } from "../../harness/depth.ts";
import { type Change, change, changed } from "./changed-bodies.ts";

const limits = {
  ...{ body_bytes_max: 1e8, body_read_ms: 10_000, body_depth_max: 100, body_ratio_max: 100 },
  // Bodies above 12 KB are scanned: smaller ones cannot exceed these limits.
  ...{ body_values_max: 100_000, body_members_max: 60_000, body_names_max: 2_000 },
};
const needs = (changed: Partial<typeof limits> = {}, bounds = plentifulBounds()) =>
  ({
    bounds,
    limits: { ...limits, ...changed },
    catalog: () => ({ models: new Map(), aliases: new Map() }),
  }) as unknown as Dependencies;
const acme = { id: "acme", keepsContent: true };

// biome-ignore lint/suspicious/noExplicitAny: the wires of three protocols
type Caller = CallerCodec<any, any>;
interface Spoken {
  name: "chat" | "messages" | "responses";
  operation: Operation;
  caller: Caller;
  engine: UpstreamCodec;
}
const spoken: Spoken[] = [
  { name: "chat", operation: createChatCompletion, caller: openaiChatCaller, engine: openaiChatUpstream },
  { name: "messages", operation: createMessage, caller: anthropicMessagesCaller(), engine: anthropicMessagesUpstream },
  { name: "responses", operation: createResponse, caller: openaiResponsesCaller, engine: openaiResponsesUpstream },
];

async function read({ operation }: Spoken, dependencies: Dependencies, text: string, organization = acme) {
  const headers = { "content-type": "application/json", "content-length": `${Buffer.byteLength(text)}` };
  const request = new Request(`http://node${operation.path}`, { method: "POST", headers, body: text });
  const connection = { address: () => "127.0.0.1", isLocal: () => true, keepOpen() {} };
  const call = new Call("req_1", request, operation.path, connection);
  return (await operation.request!.read(dependencies, call, organization)) as JsonBody;
}

const all = { model: "engine", stream: false, outputTokens_max: 100 };

/**
 * The requests to engines in all three protocols, and the parts of them that are in the caller's bytes; or the refusal.
 */
async function outcome(one: Spoken, dependencies: Dependencies, text: string): Promise<string> {
  try {
    const { value, own } = await read(one, dependencies, text);
    deepFreeze(value);
    const request = one.caller.request.decode(value);
    const asked = spoken.map(({ engine }) => refusedOr(() => engine.request.encode(request, all)));
    const { rest, handed } = own!.handOn(one.engine.request.encode(request, all), one.engine.request.forms, 64);
    const sent = Buffer.concat(joinedBody([...jsonPieces(rest)], handed)).toString();
    return JSON.stringify([value, asked, sent, handed.length, one.caller.request.remainder(value)]);
  } catch (thrown) {
    const { code, message, details } = asFault(thrown);
    return JSON.stringify([code, message, details]);
  }
}

function refusedOr(work: () => unknown): unknown {
  try {
    return work();
  } catch (thrown) {
    return String(thrown);
  }
}

function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
}

const conversation = ({ name }: Spoken, question = "hello") =>
  agentBody(question, { protocol: name, model: "acme/one", isStreamed: false, cap: 100 }, 5);

/** An edit of the text itself, for changes that no JSON value can express. */
const edit = fc.tuple(
  fc.nat(),
  fc.nat(2),
  fc.constantFrom("", ",", "]", "}", '"', "\\", "\ufeff", "\u0001", "1", "[0]"),
);

describe.each(spoken)("$name", (one) => {
  test("a request after others has the outcome of one that is the first", async () => {
    let valid = 0;
    const asked = async (changes: Change[], [place, gone, mark]: [number, number, string], isEdited: boolean) => {
      const after = needs();
      for (let time = 0; time < 2; time++) await outcome(one, after, conversation(one));
      await outcome(one, after, changed(conversation(one, "another question"), [3, 0, 1]));
      const text = changes.reduce(changed, conversation(one));
      const at = place % text.length;
      const sent = isEdited ? text.slice(0, at) + mark + text.slice(at + gone) : text;
      const alone = await outcome(one, needs(), sent);
      expect(alone).not.toContain("internal_error");
      expect(await outcome(one, after, sent)).toBe(alone);
      // Items that the first of the two requests left in the cache change nothing either.
      expect(await outcome(one, after, sent)).toBe(alone);
      if (alone.startsWith("[{")) valid += 1;
    };
    const changes = fc.array(change, { minLength: 0, maxLength: 2 });
    const isEdited = fc.integer({ min: 0, max: 3 }).map((one) => one === 0);
    const numRuns = times(60, 1_000);
    await fc.assert(fc.asyncProperty(changes, edit, isEdited, asked), { numRuns });
    expect(valid).toBeGreaterThan(numRuns / 10);
  }, 120_000);

  test("only the organization's own items are kept, and none if it wants no content kept", async () => {
    // With 1 as the seed of the hashes, no two of these items share a slot of the cache; an item that collides is not
    // cached.
    const dependencies = needs({}, { ...plentifulBounds(), items: new ItemCache(1024 ** 3, 1) });
    const { items } = dependencies.bounds;
    const readTwice = async (organization: typeof acme) => {
      for (let time = 0; time < 2; time++) await read(one, dependencies, conversation(one), organization);
    };
    await readTwice({ ...acme, keepsContent: false });
    expect(items.size).toBe(0);
    await readTwice(acme);
    const kept = items.size;
    expect(kept).toBeGreaterThan(20);
    await readTwice(acme);
    expect(items.size).toBe(kept);
    await readTwice({ ...acme, id: "other" });
    expect(items.size).toBe(2 * kept);
  });

  test("the operator bounds the memory that kept items take; with none of it, nothing is kept", async () => {
    const keptWith = async (item_cache_bytes_max: number) => {
      const dependencies = needs({}, plentifulBounds({ item_cache_bytes_max }));
      for (let time = 0; time < 3; time++)
        expect(await outcome(one, dependencies, conversation(one))).toStartWith("[{");
      const { items } = dependencies.bounds;
      expect(items.bytes).toBeLessThanOrEqual(item_cache_bytes_max);
      return items.size;
    };
    expect(await keptWith(0)).toBe(0);
    expect(await keptWith(1024 ** 2)).toBeGreaterThan(20);
  });

  test("a request that is refused leaves nothing", async () => {
    const dependencies = needs();
    const refused = conversation(one).replace('"temperature":0.2', '"temperature":"warm"');
    for (let time = 0; time < 2; time++) expect(await outcome(one, dependencies, refused)).toContain("temperature");
    // The cache has at most one entry for each field that is looked up.
    expect(dependencies.bounds.items.size).toBeLessThanOrEqual(3);
  });

  test("items with many members do not count as many names", async () => {
    const dependencies = needs({ body_names_max: 100 });
    const first = await outcome(one, dependencies, conversation(one));
    expect(first).toStartWith("[{");
    for (let time = 0; time < 2; time++) expect(await outcome(one, dependencies, conversation(one))).toBe(first);
    const names = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`name_${at}`, at]));
    const more = conversation(one).replace('"additionalProperties":false', `"properties_":${JSON.stringify(names)}`);
    expect(await outcome(one, dependencies, more)).toContain("different names");
  });
});
