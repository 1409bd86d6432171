/**
 * Reads the current state of a background response: for its client, and for a later request that repeats the request
 * which began it.
 */
import type { Call } from "../../core/http/call.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { encodeFailure } from "../../core/protocol/openai-responses/fault.ts";
import { passed } from "../../core/time/clock.ts";
import {
  answerLost,
  available,
  entriesText,
  goesOn,
  isUngranted,
  type KeepingNeeds,
  poll_ms,
  settled_ms_max,
} from "./needs.ts";
import type { LogName } from "./store/answer-log.ts";
import type { Kept } from "./store/kept.ts";
import { WrittenStream } from "./written-stream.ts";

/** The background response that an earlier request with the same idempotency key began. */
export class EarlierResponse {
  constructor(
    readonly name: LogName,
    readonly response: ResponseObject,
  ) {}
}

/**
 * The current state of a background response. It has failed if the node that ran it is gone. A failed or cancelled
 * response gets its output from the log, which has what was delivered.
 */
export async function currentResponse(needs: KeepingNeeds, kept: Kept): Promise<ResponseObject | null> {
  if (kept.response === null) return null;
  const begun = JSON.parse(kept.response) as ResponseObject;
  const isGone = kept.state === "open" && (await isAbandoned(needs, kept));
  const response = (isGone && (await endedAsGone(needs, kept, begun))) || begun;
  const isCutShort = response.status === "failed" || response.status === "cancelled";
  if (!isCutShort) return response;
  const { output, bytes } = await delivered(needs, kept, begun);
  if (isGone && bytes > 0) await needs.kept.answers.measured(kept.requestId, bytes);
  return { ...response, output };
}

/** The items in the log of a background response, and the size of that log; none if it has no log. */
async function delivered(
  { kept: { logs } }: KeepingNeeds,
  name: LogName,
  begun: ResponseObject,
): Promise<Pick<ResponseObject, "output"> & { bytes: number }> {
  const written = new WrittenStream(begun);
  let bytes = 0;
  // The log's first entry, number 0, is its head.
  for (let next = 1; ; ) {
    const entries = await logs.read(name, next);
    if (entries === "lost" || entries.length === 0) break;
    const text = entriesText(entries);
    written.saw(text);
    bytes += Buffer.byteLength(text);
    if (entries.at(-1)!.isEnd) break;
    next += entries.length;
  }
  return { output: written.output, bytes };
}

/**
 * Ends the response of a node that is gone, and frees its idempotency key. If the response was charged, the key is not
 * freed: then only the response's end was lost. Null if the response still runs, because its node was only slow. The
 * ledger knows the request by now, since a response begins only after its grant.
 */
export async function endedAsGone(
  { kept: { answers }, ledger }: KeepingNeeds,
  { requestId, organizationId }: LogName,
  begun: ResponseObject,
  log_bytes = 0,
): Promise<ResponseObject | null> {
  const receipt = await ledger.receipt(organizationId, requestId);
  if (receipt !== null && receipt.endedAt === null) return null;
  const isCharged = receipt !== null && !receipt.recovered && receipt.nanos.charged > 0;
  const failed = failedResponse(begun, isCharged ? endLost() : gone(), requestId);
  const text = JSON.stringify(failed);
  const bytes = Math.max(text.length, log_bytes);
  await answers.end(requestId, { state: "ended", bytes, response: text, freesClaim: !isCharged });
  const kept = await answers.find(requestId);
  return kept?.response ? (JSON.parse(kept.response) as ResponseObject) : failed;
}

export function failedResponse(begun: ResponseObject, fault: Fault, requestId: string): ResponseObject {
  return { ...begun, status: "failed", error: encodeFailure(fault, requestId) };
}

/**
 * Waits until the earlier request has begun its response, and returns that. Null if its idempotency key is free,
 * because that request was refused, or its response failed without a charge. Throws Faults.
 */
export async function earlierResponse(needs: KeepingNeeds, call: Call, kept: Kept): Promise<EarlierResponse | null> {
  const { answers } = needs.kept;
  for (;;) {
    const now = await available(needs, answers.find(kept.requestId));
    if (now === null || now.body === null) return null;
    if (now.state === "lost") throw answerLost();
    const response = await available(needs, currentResponse(needs, now));
    if (response && response.status !== "failed") return new EarlierResponse(now, response);
    // A failed response frees its idempotency key when it ends, unless it was charged.
    if (response && now.state === "ended") throw answerLost();
    if (response) continue;
    if (await available(needs, isAbandoned(needs, now))) await giveUp(needs, now);
    if (call.request.signal.aborted) call.leave();
    call.signal.throwIfAborted();
    await passed(needs.kept.clock, poll_ms);
  }
}

/**
 * Frees the idempotency key of a background response whose node is gone. The response may have been charged although
 * the store, after it was replaced by a replica, lacks its beginning. Nobody else will end such a response, so it ends
 * here as lost. Throws Faults if the key does not become free.
 */
async function giveUp(needs: KeepingNeeds, { organizationId, requestId }: Kept): Promise<void> {
  const { answers } = needs.kept;
  if (await available(needs, answers.abandon(requestId))) return;
  const receipt = await available(needs, needs.ledger.receipt(organizationId, requestId));
  const isCharged = receipt !== null && receipt.endedAt !== null && receipt.nanos.charged > 0;
  const kept = await available(needs, answers.find(requestId));
  if (!isCharged || kept?.state !== "open" || kept.response !== null) throw goesOn();
  await available(needs, answers.end(requestId, { state: "lost", bytes: 0 }));
  throw answerLost();
}

async function isAbandoned(needs: KeepingNeeds, { organizationId, requestId, age_ms }: Kept): Promise<boolean> {
  const receipt = await needs.ledger.receipt(organizationId, requestId);
  if (receipt === null) return isUngranted(needs, age_ms);
  if (receipt.endedAt === null) return false;
  const ran_ms = receipt.endedAt.getTime() - receipt.createdAt.getTime();
  return receipt.recovered || Math.abs(age_ms - ran_ms) > settled_ms_max;
}

/** The fault of a response that its node settled, but whose end the store did not accept. */
function endLost(): Fault {
  return new Fault("storage_unavailable", "The answer could not be kept, and is lost. It was charged.", {
    retryAfterSeconds: 1,
  });
}

/** The fault of a stream whose run was settled by its node, which was gone before it wrote the stream's end. */
export function cutShort(): Fault {
  return new Fault(
    "upstream_unavailable",
    "The answer was cut short, and its node was gone before it wrote why. What you have was charged. Use a new key to ask again.",
  );
}

export function gone(): Fault {
  return new Fault(
    "upstream_unavailable",
    "The answer was cut short, because the node that wrote it is gone. It was not charged beyond what was delivered. Send the request again.",
    { retryAfterSeconds: 1 },
  );
}

/** The fault of a repeated request whose first request failed, and told the reason only to its own client. */
export function neverBegun(): Fault {
  return new Fault(
    "upstream_unavailable",
    "The first request with this 'idempotency-key' failed before its answer began. Send the request again.",
    { retryAfterSeconds: 1 },
  );
}

/** The fault of a stream whose background response was deleted. */
export function deleted(): Fault {
  return new Fault("response_not_found", "The response was deleted, so its events have ended.");
}
