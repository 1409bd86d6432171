/**
 * UPSTREAM: one attempt at one engine over HTTP: encode, send, read events, decode, with a deadline on every wait.
 *
 * Whatever happens on the wire, the stream of events that leaves here follows the grammar of inference/event.ts. Its
 * last event is `response-end` or `response-failed`; nothing is thrown. Leaving the generator early aborts the request,
 * which closes the socket.
 */
import { type InferenceEvent, isPartStart, isTerminal } from "../inference/event.ts";
import { asFault, Fault } from "../inference/fault.ts";
import type { AnswerContext, AnswerReader, ResponseIdentity } from "../protocol/codec.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { compact } from "../protocol/json.ts";
import { type Cancellation, type Signal, within } from "../time/cancellation.ts";
import { yieldFor } from "../time/turns.ts";
import { AnswerSize, CallArguments, Watchdog, whereMuch } from "./answer-bounds.ts";
import {
  type AttemptEnd,
  type EngineReport,
  endOfCause,
  faultOfCause,
  kindOfFault,
  NoRoom,
  tooSlow,
} from "./attempt.ts";
import { type HoldBytes, readJson } from "./engine-json.ts";
import { type Reply, read_bytes_max } from "./http1/exchange.ts";
import { type Sending, sendWithLess } from "./send.ts";
import { StreamReader } from "./stream-reader.ts";

/**
 * The request that one attempt sends to its engine, and how to handle the answer. Only the engine's answer shows
 * whether it streams, whatever the request asked for.
 */
export interface EngineQuestion extends Sending {
  identity: ResponseIdentity;
  patience: Patience;
  /** Aborted when the caller gives up. Its reason (a Fault) ends the stream. */
  signal: Signal;
  /**
   * Set if no client reads the parts as they arrive: after the first part, they are gathered for this many
   * milliseconds.
   */
  gather_ms?: number;
  /**
   * Called when the engine has refused a field that is not essential, with the dialect in which the engine gets the
   * request the next time.
   */
  refuses?(lesser: Dialect): void;
  /**
   * Called with the number of bytes of the answer that are kept in memory, if there are many. Throws the Fault that
   * ends the request.
   */
  hold?(bytes: number): void;
  /** Called once with the end of the attempt, before the generator yields its last event. */
  ended?(end: AttemptEnd, report: EngineReport): void;
}

export interface Patience {
  /** The time for name resolution, TCP and TLS. */
  connect_ms: number;
  /** The time from the connection until the first part of the answer. */
  first_part_ms: number;
  /** The time between two parts of the answer if the engine sends nothing at all in between. */
  idle_ms: number;
  /** The time between two parts of the answer if the engine sends signs of life in between, such as comments. */
  alive_ms: number;
  total_ms: number;
  /**
   * Set if another engine could get the request instead, after `after_ms` without an answer. `take`: called if the
   * first part is late; returns whether the other engine gets the request.
   */
  spare: { after_ms: number; take(): boolean } | null;
}

export async function* ask(question: EngineQuestion): AsyncGenerator<InferenceEvent[], void, void> {
  const { codec, identity, signal, patience } = question;
  const work = signal.child();
  const answer: Reading = { reply: null, next_bytes: read_bytes_max, isEnded: false, isOver: false, isRead: false };
  const report: EngineReport = { usage: null, reason: null };
  const dog = new Watchdog((waitedFor) => {
    if (waitedFor === spareWait && !patience.spare?.take()) {
      dog.expect(restOf(patience), firstWait);
      return;
    }
    // If no part is awaited from the engine, the attempt waits for a caller that does not read: the engine is not to
    // blame.
    if (dog.isResting) told({ kind: "abandoned" });
    work.abort(tooSlow(waitedFor));
  });
  const leftOut = new Set<string>();
  const context = contextOf(question, leftOut);
  const told = once((end) => {
    const fields = leftOut.size > 0 ? { ...end, leftOut: [...leftOut] } : end;
    question.ended?.(signal.aborted ? { kind: "abandoned" } : fields, report);
  });
  dog.limit(patience.total_ms, "the whole answer");
  try {
    const connected = () =>
      dog.expect(patience.spare?.after_ms ?? patience.first_part_ms, patience.spare ? spareWait : firstWait);
    const connect_ms = Math.min(patience.connect_ms, patience.total_ms);
    const line = { connect_ms, connected, signal: work };
    const { reply, refusal } = await sendWithLess(question, line, (made) => {
      answer.reply = made;
    });
    if (refusal) {
      told(refusal.end);
      yield [{ type: "response-failed", fault: refusal.fault }];
      return;
    }
    // Media types are compared without case (RFC 9110, 8.3.1).
    const contentType = (reply.headers.get("content-type") ?? "").toLowerCase();
    const stream = readerOf(question, contentType, context);
    if (stream) {
      const read = reading(question, stream, { answer, report, told });
      const wait_ms = patience.idle_ms + (question.gather_ms ?? 0);
      let isBegun = false;
      // One loop and not nested generators, because each generator costs every batch several turns of the event loop.
      while (!answer.isOver) {
        const arrived = read(await reply.read(answer.next_bytes));
        const batch = arrived instanceof Promise ? await arrived : arrived;
        if (batch.length === 0) {
          // A comment, a ping, or a piece of an event.
          if (isBegun) dog.renew();
          continue;
        }
        // Until the first part, the deadline stays: an engine may announce its answer before it has read the request.
        isBegun ||= batch.some(isPartStart);
        if (isBegun) dog.rest();
        yield batch;
        // A part that this process has delayed is noticed late, so the deadline for the next part is that much later.
        if (isBegun) dog.expect(wait_ms + reply.delay_ms, nextWait, patience.alive_ms);
      }
    } else if (contentType.includes("json")) {
      const json = readJson(reply, holding(question));
      const { value, bytes } = json instanceof Promise ? await json : json;
      answer.isRead = true;
      const events = codec.response.decode(value, identity, context);
      const before = yieldFor(bytes);
      if (before) await before;
      const calls = new CallArguments();
      for (const event of events) {
        calls.take(event);
        note(report, event);
      }
      const behind = yieldFor(bytes);
      if (behind) await behind;
      told(endOf(events));
      yield events;
    } else {
      throw new Error(`the upstream answered with content type '${contentType.slice(0, 100)}'`);
    }
  } catch (cause) {
    const ours = work.reason instanceof Fault ? work.reason : null;
    told(ours ? { kind: "timeout" } : endOfCause(cause));
    yield [{ type: "response-failed", fault: ours ?? faultOfCause(cause) }];
  } finally {
    told({ kind: "abandoned" });
    dog.stop();
    work.detach();
    if (!answer.isRead) {
      if (answer.reply && answer.isEnded) void readOut(answer.reply, work);
      else work.abort(unread);
    }
  }
}

/** The most names of left-out fields that are logged for one answer. */
const leftOut_max = 16;

function contextOf({ request, dialect }: EngineQuestion, leftOut: Set<string>): AnswerContext {
  return {
    model: request.model,
    outputTokens_max: request.outputTokens_max,
    dialect,
    leftOut: (field) => void (leftOut.size < leftOut_max && leftOut.add(field)),
  };
}

function note(report: EngineReport, event: InferenceEvent): void {
  if (event.type === "usage") report.usage = event.usage;
  else if (event.type === "response-end") report.reason = event.reason;
}

const unread = "nobody reads the answer";
const firstWait = "the first part";
const nextWait = "the next part";
const spareWait = "the first part, while another engine stands ready";

function restOf({ first_part_ms, spare }: Patience): number {
  return Math.max(0, first_part_ms - (spare?.after_ms ?? 0));
}

function once(tell: (end: AttemptEnd) => void): (end: AttemptEnd) => void {
  let isTold = false;
  return (end) => {
    if (isTold) return;
    isTold = true;
    tell(end);
  };
}

/** How far an answer has been read. A connection whose answer was read to its end can serve the next request. */
interface Reading {
  reply: Reply | null;
  next_bytes: number;
  /** Whether the last event has arrived. The engine may not have closed the answer yet. */
  isEnded: boolean;
  /** Whether no event follows, because the answer has ended or failed. */
  isOver: boolean;
  /** Whether the answer was read to its last byte. Then nothing needs to be aborted, which is expensive. */
  isRead: boolean;
}

/**
 * Reads the few bytes that may follow the last event, so that the connection can be reused. If the engine sends more,
 * or does not end in time, the connection is closed.
 */
async function readOut(reply: Reply, work: Cancellation): Promise<void> {
  const toItsEnd = async () => {
    for (let reads = 0; reads <= rest_reads_max; reads++) if ((await reply.read()) === null) return;
    throw new Error("the engine sent more after the end of its answer");
  };
  await within(toItsEnd(), rest_ms_max, "the engine").catch(() => work.abort(unread));
}
const rest_ms_max = 1000;
const rest_reads_max = 16;

interface ReaderParts {
  answer: Reading;
  report: EngineReport;
  told(end: AttemptEnd): void;
}

/**
 * The reader for an answer that is decoded while it arrives; null if the answer is decoded only when all of it has
 * arrived.
 */
function readerOf(question: EngineQuestion, contentType: string, context: AnswerContext): AnswerReader | null {
  const { codec, identity, stream } = question;
  if (contentType.includes("text/event-stream") && (stream || !codec.response.reader))
    return new StreamReader(codec.stream.decoder(identity, context));
  return (contentType.includes("json") && codec.response.reader?.(identity, context)) || null;
}

/**
 * Makes the function that decodes an answer while it arrives. It takes the bytes of one read (null at the end) and
 * returns one batch of events: in a batch, an event costs a tenth of what it would cost alone.
 */
function reading(question: EngineQuestion, stream: AnswerReader, { answer, report, told }: ReaderParts) {
  const { gather_ms = 0 } = question;
  const hold = holding(question);
  const size = new AnswerSize(gather_ms > 0);
  const calls = new CallArguments();

  const heard = (batch: InferenceEvent[], isLast: boolean): InferenceEvent[] => {
    let hasPart = false;
    let end: InferenceEvent | null = null;
    for (const event of batch) {
      size.take(event);
      calls.take(event);
      note(report, event);
      if (event.type === "part-start") hasPart = true;
      else if (isTerminal(event)) end ??= event;
    }
    answer.next_bytes = stream.next_bytes;
    hold(stream.held_bytes + size.kept_bytes);
    if (isLast || end?.type === "response-end") answer.isEnded = true;
    if (isLast || end) answer.isOver = true;
    if (end) told(endOf(batch));
    if (hasPart) {
      answer.reply?.flow();
      if (gather_ms > 0) answer.reply?.gather(gather_ms);
    }
    return batch;
  };
  return (pieces: Uint8Array[] | null): InferenceEvent[] | Promise<InferenceEvent[]> => {
    const isLast = pieces === null;
    const batch = isLast ? stream.end() : stream.push(pieces);
    return batch instanceof Promise ? batch.then((events) => heard(events, isLast)) : heard(batch, isLast);
  };
}

/** Makes a function that calls the question's `hold`, and throws the fault of `hold` as NoRoom. */
function holding({ hold }: EngineQuestion): HoldBytes {
  return whereMuch((bytes) => {
    try {
      hold?.(bytes);
    } catch (fault) {
      throw new NoRoom(asFault(fault));
    }
  });
}

function endOf(batch: readonly InferenceEvent[]): AttemptEnd {
  const last = batch.find(isTerminal);
  if (last?.type === "response-failed")
    return { kind: kindOfFault(last.fault), ...compact({ said: last.fault.details.engineText }) };
  return { kind: "answered", ...compact({ unknownReason: last?.unknownReason }) };
}
