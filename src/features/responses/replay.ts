/**
 * REPLAY: answers a request with the answer of an earlier one that had the same idempotency key and body: the same
 * bytes, from the beginning. No engine is asked, and nothing is charged.
 */
import type { Principal } from "../../core/auth/verdict.ts";
import type { Call } from "../../core/http/call.ts";
import type { HttpAnswer } from "../../core/http/frame.ts";
import { json, jsonText } from "../../core/http/json.ts";
import { eventStream, type StreamedAnswer } from "../../core/http/stream.ts";
import type { StreamOwner } from "../../core/http/streamed-body.ts";
import { asFault, type Fault } from "../../core/inference/fault.ts";
import type { Adapter, InferenceWire } from "../../core/operations/adapter.ts";
import { failure as messagesFailure } from "../../core/protocol/anthropic-messages/encode-stream.ts";
import type { ResponseIdentity } from "../../core/protocol/codec.ts";
import { failure as chatFailure } from "../../core/protocol/openai-chat/encode-response.ts";
import type { ResponsesRequest } from "../../core/protocol/openai-responses/contract.ts";
import { begunResponse } from "../../core/protocol/openai-responses/response-object.ts";
import { comment, encodeSse, type SseMessage } from "../../core/sse/decode.ts";
import { hexOf } from "../../core/store/ids.ts";
import type { Operation } from "../../core/store/ledger.ts";
import { EarlierResponse } from "./current-response.ts";
import type { Fate, Follower } from "./follower.ts";
import { entriesText, type KeepingNeeds, type StreamEnding } from "./needs.ts";
import { WrittenStream } from "./written-stream.ts";

export async function replay<Wire extends InferenceWire, Reply>(
  dependencies: KeepingNeeds,
  call: Call,
  { principal, earlier, wire }: { principal: Principal; earlier: Follower | EarlierResponse; wire: Wire },
  { operation, idPrefix }: Adapter<Wire, Reply>,
): Promise<HttpAnswer> {
  call.watchClient();
  dependencies.kept.metrics.replayed();
  noteReplay(dependencies, call, principal, { operation, replayOf: earlier.name.requestId });
  const named = { "x-service-replay-of": earlier.name.requestId };
  if (earlier instanceof EarlierResponse) return json(200, earlier.response, named);
  const headers = { ...earlier.head.headers, ...named };
  if (!earlier.head.stream) return jsonText(200, earlier.text, headers);
  const ending = endingOf({ operation }, wire, earlier.head.identity ?? unknownIdentity(earlier, idPrefix, wire));
  return replayed(earlier, { headers, heartbeat_ms: dependencies.limits.heartbeat_ms, ending });
}

/** Writes the replay's receipt, which names the request whose answer it got. Nothing waits for it. */
function noteReplay(
  { kept, log }: KeepingNeeds,
  { requestId, notes }: Call,
  { key, organization }: Principal,
  { operation, replayOf }: { operation: Operation; replayOf: string },
): void {
  const note = {
    kind: "replay",
    replayOf,
    keyId: key.id,
    operation,
    model: notes.model ?? "",
    stream: notes.stream === true,
  } as const;
  kept.answers
    .writeNote({ requestId, organizationId: organization.id }, note)
    .catch((cause) => log.event("warn", "replay_unnoted", { request_id: requestId, cause: String(cause) }));
}

/**
 * An identity for an answer whose log has none, because its node ran an earlier version. It is the same for each
 * repeat.
 */
function unknownIdentity({ name }: Follower, idPrefix: string, { model }: InferenceWire): ResponseIdentity {
  const hex = hexOf(name.requestId, "req_");
  // The first 48 bits of a UUIDv7 are its milliseconds.
  const createdAtSeconds = Math.floor(Number.parseInt(hex.slice(0, 12), 16) / 1000);
  return { responseId: idPrefix + hex, createdAtSeconds, model };
}

/** How this operation's protocol ends a stream whose encoder is gone. `identity`: that of the answer. */
export function endingOf(
  { operation }: Pick<Adapter<InferenceWire, unknown>, "operation">,
  wire: InferenceWire,
  identity: ResponseIdentity,
): StreamEnding {
  if (operation === "responses") return new WrittenStream(begunResponse(wire as ResponsesRequest, identity));
  return endsBy(operation === "messages" ? messagesFailure : chatFailure);
}

/** Ends a stream in a protocol in which the frames of a failure do not depend on what was written before. */
function endsBy(failure: (fault: Fault, requestId: string) => SseMessage[]): StreamEnding {
  return { saw() {}, end: (fault, requestId) => failure(fault, requestId).map(encodeSse).join("") };
}

export interface ReplayOptions {
  headers: Record<string, string>;
  heartbeat_ms: number;
  /** Writes the end of a stream whose writer is gone. */
  ending: StreamEnding;
  /** Returns the part of the text to send; absent: all of the text is sent. */
  excerpt?(text: string): string;
  /** Writes the end of a stream whose log is lost; absent: the stream ends in a failure. */
  lost?(): Promise<string>;
}

export function replayed(earlier: Follower, options: ReplayOptions): StreamedAnswer {
  return eventStream(options.headers, (owner) => new ReplaySource(earlier, options, owner));
}

const encoder = new TextEncoder();
const silence = encoder.encode(comment("waiting"));

/** A class, because closures would be made again for each stream (docs/design/runtime.md, Memory). */
class ReplaySource implements Bun.UnderlyingSource<Uint8Array> {
  #isClosed = false;

  constructor(
    readonly earlier: Follower,
    readonly options: ReplayOptions,
    readonly owner: StreamOwner,
  ) {}

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      for (;;) {
        const entries = await this.earlier.read(performance.now() + this.options.heartbeat_ms);
        if (this.#isClosed) return;
        if (typeof entries === "string") return this.#end(controller, await this.#endAs(entries));
        if (entries.length === 0) return controller.enqueue(silence);
        const all = entriesText(entries);
        this.options.ending.saw(all);
        const text = this.options.excerpt?.(all) ?? all;
        const isOver = entries.at(-1)!.isEnd;
        if (isOver) this.#close();
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (isOver) controller.close();
        if (isOver || text !== "") return;
      }
    } catch (thrown) {
      const fault = asFault(thrown);
      this.#end(controller, this.options.ending.end(fault, this.earlier.name.requestId), fault);
    }
  }

  #endAs(fate: Fate): Promise<string> {
    const { ending, lost } = this.options;
    return fate === "lost" && lost ? lost() : this.earlier.endAs(fate, ending);
  }

  cancel(): void {
    this.owner.left();
    this.#close();
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>, failure: string, fault?: Fault): void {
    if (this.#isClosed) return;
    this.#close(fault);
    controller.enqueue(encoder.encode(failure));
    controller.close();
  }

  #close(fault?: Fault): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.owner.closed(fault);
  }
}
