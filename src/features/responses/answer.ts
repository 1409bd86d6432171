/**
 * Answers a request whose answer is kept so that it can be read again. The answer goes to its client and to its log; a
 * background response is made without its client.
 */
import type { HttpAnswer } from "../../core/http/frame.ts";
import { jsonText } from "../../core/http/json.ts";
import { endsAfter } from "../../core/http/stream.ts";
import { collect, type Result } from "../../core/inference/result.ts";
import type { InferenceWire } from "../../core/operations/adapter.ts";
import { type Answering, encoding, replies, type Save, saverOf, untilFirstPart } from "../../core/operations/answer.ts";
import type { ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { type Events, endsWithFailure, inBackground } from "./background.ts";
import { failed, keptStream, logged } from "./first-client.ts";
import type { Keeping } from "./keeping.ts";

export async function keptAnswer<Wire extends InferenceWire, Reply>(
  keeping: Keeping,
  asked: Answering<Wire, Reply>,
): Promise<HttpAnswer> {
  const { call, headers, prepared, adapter } = asked;
  const { request, wire, identity } = prepared;
  const response = (keeping.isBackground && adapter.background?.begun(wire, identity)) || null;
  if (response) await keeping.respond(response);
  if (!response || keeping.asProduced) await keeping.open({ stream: request.stream, identity, headers });
  const save = savingOf(asked, keeping);
  const answering = keeping.isBackground ? { ...asked, events: endsWithFailure(asked.events, keeping) } : asked;
  if (request.stream) {
    const { rest, options } = encoding(answering, save);
    return keptStream(call, await untilFirstPart(answering, rest, save !== null), options, keeping);
  }
  if (!response) return keptWhole(asked.events, headers, keeping, replies(asked, save));
  if (keeping.asProduced) {
    const { rest, options } = encoding(answering, save);
    const stream = { head: [], pending: null, rest };
    return inBackground(call, response, headers, () => logged(call, stream, options, keeping));
  }
  const replyOf = replies(answering, save);
  const work = async () => {
    await collect(endsAfter(answering.events, async (result) => void (await replyOf(result))));
  };
  return inBackground(call, response, headers, () => work().catch((thrown) => void failed(call, thrown)));
}

/** The function that stores the answer. A background response that was cancelled before its end is not stored. */
function savingOf<Wire extends InferenceWire, Reply>(
  answering: Answering<Wire, Reply>,
  keeping: Keeping,
): Save<Reply> | null {
  const save = saverOf(answering);
  if (!keeping.isBackground) return save;
  return async (reply) => {
    if (await keeping.finish(reply as unknown as ResponseObject)) await save?.(reply);
    else await keeping.endedBefore();
  };
}

/** Answers without streaming. The answer is stored before its run is settled. */
async function keptWhole(
  events: Events,
  headers: Record<string, string>,
  keeping: Keeping,
  replyOf: (result: Result) => Promise<unknown>,
): Promise<Response> {
  let text = "";
  const stored = async (result: Result) => {
    text = JSON.stringify(await replyOf(result));
    keeping.write(text);
    await keeping.end();
  };
  await collect(endsAfter(events, stored));
  return jsonText(200, text, headers);
}
