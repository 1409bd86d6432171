/**
 * BACKGROUND: a response that runs without its client, who fetches it later (docs/protocols.md, Background responses).
 * Its state is a row of the database, so that any node can return and cancel it.
 */
import type { Call } from "../../core/http/call.ts";
import type { HttpAnswer } from "../../core/http/frame.ts";
import { json } from "../../core/http/json.ts";
import type { InferenceEvent } from "../../core/inference/event.ts";
import { asFault, Fault } from "../../core/inference/fault.ts";
import type { ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { passed } from "../../core/time/clock.ts";
import { currentResponse } from "./current-response.ts";
import type { KeptParts } from "./dependencies.ts";
import { Follower } from "./follower.ts";
import type { Keeping } from "./keeping.ts";
import { available, type KeepingNeeds, poll_ms } from "./needs.ts";
import type { ReplayOptions } from "./replay.ts";
import type { LogName } from "./store/answer-log.ts";
import type { Kept } from "./store/kept.ts";
import { framesAfter, WrittenStream } from "./written-stream.ts";

export type Events = AsyncGenerator<readonly InferenceEvent[], void, void>;

/** Answers immediately, and continues the work in the background. The request ends with that work. */
export function inBackground(
  call: Call,
  begun: object,
  headers: Record<string, string>,
  work: () => Promise<void>,
): HttpAnswer {
  return {
    open(owner) {
      call.connection.keepOpen(false);
      void work().finally(() => owner.closed());
      return json(200, begun, headers);
    },
  };
}

/** Passes all events on. If they end in a failure, the background response ends with that failure. */
export async function* endsWithFailure(events: Events, keeping: Keeping): Events {
  let failure: Fault | null = null;
  const fails = async () => {
    if (failure) await keeping.fails(failure);
  };
  try {
    for await (const batch of events) {
      const last = batch.at(-1);
      if (last?.type === "response-failed") failure = last.fault;
      yield batch;
      // At this point the text is in the log, and the run is not settled yet.
      await fails();
    }
  } catch (thrown) {
    failure ??= asFault(thrown);
    throw thrown;
  } finally {
    await fails();
  }
}

/**
 * The current state of a response, for its client. A completed response was also stored by then, so that it can be
 * continued.
 */
export async function toldResponse(needs: KeepingNeeds, kept: Kept): Promise<ResponseObject | null> {
  const response = await currentResponse(needs, kept);
  const isComplete = response?.status === "completed" || response?.status === "incomplete";
  if (isComplete) await untilSettled(needs, kept);
  return response;
}

/** The longest wait for the end of a cancelled run: a node learns within a second of a cancellation at another node. */
const stops_ms_max = 3_000;

/**
 * Cancels a running response, on any node. Returns the response after the run has ended, so that its text is exactly
 * what is charged; if its node does not end the run in time, returns its current state.
 */
export async function cancelled(needs: KeepingNeeds, kept: Kept): Promise<ResponseObject | null> {
  const { answers, open } = needs.kept;
  const response = await toldResponse(needs, kept);
  if (response === null || (response.status !== "in_progress" && response.status !== "queued")) return response;
  const text = JSON.stringify({ ...response, status: "cancelled" });
  if (await answers.end(kept.requestId, { state: "ended", bytes: text.length, response: text }))
    for (const one of open) if (one.requestId === kept.requestId) one.cancel();
  await untilSettled(needs, kept);
  const now = await answers.find(kept.requestId);
  return now && currentResponse(needs, now);
}

/**
 * Cancels those responses of this node that were cancelled on another node, or deleted there: then they have no row any
 * more.
 */
export async function followCancels({ answers, open }: Pick<KeptParts, "answers" | "open">): Promise<void> {
  const begun = [...open].filter(({ hasBegun }) => hasBegun);
  if (begun.length === 0) return;
  const running = new Set(await answers.open(begun.map(({ requestId }) => requestId)));
  for (const one of begun) if (!running.has(one.requestId)) one.cancel();
}

/**
 * Waits until the run of a response is settled, which happens only after the response was stored. The wait is limited.
 */
export async function untilSettled({ kept: { clock }, ledger }: KeepingNeeds, name: LogName): Promise<void> {
  const until_ms = clock.now_ms() + stops_ms_max;
  while (clock.now_ms() < until_ms) {
    const receipt = await ledger.receipt(name.organizationId, name.requestId);
    if (receipt?.endedAt) return;
    await passed(clock, poll_ms);
  }
}

/** A background response that is followed as a stream. */
interface Followed extends Pick<ReplayOptions, "ending" | "excerpt" | "lost"> {
  follower: Follower;
}

/**
 * Streams the events of a background response that follow the event `after`, until its end. Null if the response was
 * not created as a stream, or its events are lost.
 */
export async function followedResponse(
  needs: KeepingNeeds,
  call: Call,
  kept: Kept,
  after: number,
): Promise<Followed | null> {
  const follower = new Follower(needs, call, kept);
  if (!(await follower.opened()) || !follower.head.stream) return null;
  const ending = new WrittenStream(JSON.parse(kept.response!));
  const excerpt = (text: string) => framesAfter(text, after);
  return { follower, ending, excerpt, lost: () => endOf(needs, kept, ending) };
}

/** The end of a stream whose log is lost: the response went on without it, and its own end is stored. */
async function endOf(needs: KeepingNeeds, { requestId }: LogName, stream: WrittenStream): Promise<string> {
  const now = await available(needs, needs.kept.answers.find(requestId));
  const response = now && (await available(needs, currentResponse(needs, now)));
  const lost = new Fault(
    "storage_unavailable",
    "The further events of this response were too many to be kept, or are lost. Fetch the response without 'stream'.",
  );
  return (response && stream.endAs(response)) || stream.end(lost, requestId);
}
