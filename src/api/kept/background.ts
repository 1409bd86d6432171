/**
 * BACKGROUND: a response that runs on while its client asks for it now and then (docs/protocols.md, Background
 * responses). Its state is a row of the database, so any node can tell it, and cancel it.
 */
import type { Call } from "../../http/call.ts";
import type { Answer } from "../../http/frame.ts";
import { json } from "../../http/json.ts";
import type { InferenceEvent } from "../../inference/event.ts";
import { Fault } from "../../inference/fault.ts";
import { framesAfter } from "../../protocol/openai-responses/broken-stream.ts";
import type { ResponseObject } from "../../protocol/openai-responses/contract.ts";
import type { Kept } from "../../store/kept.ts";
import { failedResponse } from "./failed-response.ts";
import { Follower } from "./follower.ts";
import type { Keeping } from "./keeping.ts";
import type { KeepingNeeds } from "./needs.ts";

/** The time from the start of a response to its grant, or its end, with a margin. */
const granted_ms_max = 30_000;
/** How long after its settlement a response may still say that it runs. */
const settled_ms_max = 10_000;

type Events = AsyncGenerator<readonly InferenceEvent[], void, void>;

/** Answers at once, and works on. The request ends with the work. */
export function inBackground(
  call: Call,
  begun: object,
  headers: Record<string, string>,
  work: () => Promise<void>,
): Answer {
  return {
    open(owner) {
      call.connection.keepOpen(false);
      void work().finally(() => owner.closed());
      return json(200, begun, headers);
    },
  };
}

/** The same events. If the last one is a failure, the response ends with it. */
export async function* endsWithFailure(events: Events, keeping: Keeping): Events {
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "response-failed") await keeping.fails(last.fault);
    yield batch;
  }
}

/** A background response as it stands. If the node that ran it is gone, it has failed. */
export async function currentResponse(needs: KeepingNeeds, kept: Kept): Promise<ResponseObject | null> {
  if (kept.response === null) return null;
  const response = JSON.parse(kept.response) as ResponseObject;
  if (kept.state !== "open" || !(await isAbandoned(needs, kept))) return response;
  const failed = failedResponse(response, gone(), kept.requestId);
  const text = JSON.stringify(failed);
  await needs.kept.answers.end(kept.requestId, { state: "ended", bytes: text.length, response: text });
  const now = await needs.kept.answers.find(kept.requestId);
  return now?.response ? (JSON.parse(now.response) as ResponseObject) : failed;
}

async function isAbandoned({ ledger }: KeepingNeeds, { organizationId, requestId, age_ms }: Kept): Promise<boolean> {
  const receipt = await ledger.receipt(organizationId, requestId);
  if (receipt === null) return age_ms > granted_ms_max;
  if (receipt.endedAt === null) return false;
  return receipt.recovered || age_ms - (receipt.endedAt.getTime() - receipt.createdAt.getTime()) > settled_ms_max;
}

/** Cancels a response that runs, on whichever node. Returns how it stands then. */
export async function cancelled(needs: KeepingNeeds, kept: Kept): Promise<ResponseObject | null> {
  const { answers, open } = needs.kept;
  const response = await currentResponse(needs, kept);
  if (response === null || (response.status !== "in_progress" && response.status !== "queued")) return response;
  const text = JSON.stringify({ ...response, status: "cancelled" });
  if (await answers.end(kept.requestId, { state: "ended", bytes: text.length, response: text }))
    for (const one of open) if (one.requestId === kept.requestId) one.cancel();
  const now = await answers.find(kept.requestId);
  return now?.response ? (JSON.parse(now.response) as ResponseObject) : null;
}

/** The events of a background response after this number, followed until its end. Null if it has no log. */
export async function followed(
  needs: KeepingNeeds,
  call: Call,
  kept: Kept,
  after: number,
): Promise<{ follower: Follower; excerpt: (text: string) => string } | null> {
  const follower = new Follower(needs, call, kept);
  if (!(await follower.opened())) return null;
  return { follower, excerpt: (text) => framesAfter(text, after) };
}

export function gone(): Fault {
  return new Fault(
    "upstream_unavailable",
    "The answer was cut short, because the node that wrote it is gone. It was not charged beyond what was delivered. Send the request again.",
    { retryAfterSeconds: 1 },
  );
}
