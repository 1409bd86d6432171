/**
 * One `response.create` as an operation, with the checks, metering and record of `POST /v1/responses`. The differences:
 * the envelope of its body, the wait for earlier responses of its lane (lanes.ts), and the conversations that it can
 * continue.
 */
import type { JsonBody } from "../../../core/body/read.ts";
import type { Call } from "../../../core/http/call.ts";
import type { HttpAnswer } from "../../../core/http/frame.ts";
import type { InferenceEvent } from "../../../core/inference/event.ts";
import type { Adapter } from "../../../core/operations/adapter.ts";
import { streamed } from "../../../core/operations/answer.ts";
import { infer } from "../../../core/operations/infer.ts";
import type { Operation } from "../../../core/operations/operation.ts";
import { type InferenceInput, inferenceBody, prepare } from "../../../core/operations/prepare.ts";
import { createResponse, responsesAdapter } from "../../../core/operations/responses.ts";
import type { InputItem, ResponseObject, ResponsesRequest } from "../../../core/protocol/openai-responses/contract.ts";
import { conversationOf } from "../../../core/protocol/openai-responses/references.ts";
import type { ResponsesDependencies } from "../dependencies.ts";
import { type History, resolveReferences } from "../records.ts";
import { type CreateEvent, SteeringRefused, validateClientEvent } from "./client-event.ts";
import type { LanePlace, Lanes } from "./lanes.ts";
import type { Recent } from "./recent.ts";

export interface SocketState {
  lanes: Lanes;
  recent: Recent;
}

export class Create implements Disposable {
  readonly #state: SocketState;
  readonly #before: Promise<void>;
  readonly #joined = Promise.withResolvers<void>();
  #event: Omit<CreateEvent, "request"> = { streamId: null, isGenerated: true };
  #place: LanePlace | null = null;
  #continued: string | null = null;
  /** The items of the request and of the conversation that it continues, as JSON. */
  #conversation = "";
  #isAnswered = false;
  /** The refusal, if the client tried to steer a running response. */
  steering: SteeringRefused | null = null;

  /** Prepares the operation of one message. `before`: resolves when the previous message has joined its lane. */
  constructor(state: SocketState, before: Promise<void>) {
    this.#state = state;
    this.#before = before;
  }

  /** Resolves when this message has joined its lane, or has ended. */
  get joined(): Promise<void> {
    return this.#joined.promise;
  }

  get streamId(): string | null {
    return this.#event.streamId;
  }

  operation(): Operation {
    return {
      ...createResponse,
      request: { schema: body.schema, read: (...reading) => this.#read(...reading) },
      handle: (dependencies: ResponsesDependencies, call, input) =>
        this.#handle(dependencies, call, input as InferenceInput<ResponsesRequest>),
    };
  }

  /** Called when the answer was sent, or never will be. */
  [Symbol.dispose](): void {
    this.#joined.resolve();
    this.#place?.[Symbol.dispose]();
    if (!this.#isAnswered && this.#continued !== null) this.#state.recent.evict(this.#continued);
  }

  /**
   * Reads the body, but does not keep its bytes to send them to an engine: a message has other bytes than a request,
   * because it wraps the request in an envelope.
   */
  async #read(...reading: Parameters<typeof body.read>): Promise<JsonBody<ResponsesRequest>> {
    await this.#before;
    try {
      const { value, bytes, blank_bytes } = await body.read(...reading);
      const { request, ...event } = value;
      this.#event = event;
      this.#continued = request.previous_response_id ?? null;
      this.#place = this.#state.lanes.join(this.#lane);
      this.#joined.resolve();
      return { value: request, bytes, blank_bytes, own: null, digest: null };
    } catch (thrown) {
      if (thrown instanceof SteeringRefused) this.steering = thrown;
      throw thrown;
    }
  }

  async #handle(
    dependencies: ResponsesDependencies,
    call: Call,
    input: InferenceInput<ResponsesRequest>,
  ): Promise<HttpAnswer> {
    call.watchClient();
    await this.#turn(call);
    const adapter = this.#adapter(dependencies);
    return this.#event.isGenerated
      ? infer(dependencies, call, input, adapter)
      : unanswered(dependencies, call, input, adapter);
  }

  /** Waits until the message's lane is free. Throws if the call ends before. */
  async #turn({ signal }: Call): Promise<void> {
    const ended = Promise.withResolvers<void>();
    const listening = signal.listen(() => ended.resolve());
    await Promise.race([this.#place?.turn, ended.promise]);
    listening.stop();
    signal.throwIfAborted();
  }

  #adapter(dependencies: ResponsesDependencies): Adapter<ResponsesRequest, ResponseObject> {
    const adapter = responsesAdapter(dependencies);
    return {
      ...adapter,
      resolve: async (wire, caller) => {
        const resolved = await resolveReferences(dependencies, wire, caller, this.#history());
        this.#conversation = JSON.stringify(conversationOf(resolved.wire).map(({ item }) => item));
        return resolved;
      },
      saver: (wire, maker) => {
        // A conversation that asks for no answer has no grant and no record, so it is kept on the connection alone.
        const save = this.#event.isGenerated ? adapter.saver?.(wire, maker) : undefined;
        return async (answer) => {
          await save?.(answer);
          this.#keep(answer);
        };
      },
    };
  }

  #history(): History | null {
    const kept = this.#continued === null ? null : this.#state.recent.find(this.#continued);
    return kept && { items: JSON.parse(kept.items) as InputItem[], bytes: kept.bytes };
  }

  /** Keeps the conversation, with this response, in memory. A summary replaces the conversation before it. */
  #keep({ id, output }: ResponseObject): void {
    this.#isAnswered = true;
    const answer = JSON.stringify(output);
    const isSummary = output.some(({ type }) => type === "compaction");
    const comma = this.#conversation === "[]" || output.length === 0 ? "" : ",";
    const items = isSummary ? answer : `${this.#conversation.slice(0, -1)}${comma}${answer.slice(1)}`;
    this.#state.recent.keep(this.#lane, id, items);
  }

  get #lane(): string {
    return this.#event.streamId ?? "";
  }
}

const body = inferenceBody<CreateEvent>(createResponse.request!.schema, {
  validate: validateClientEvent,
  isStreamed: () => true,
});

/** Keeps the request's conversation and sends an empty answer: no engine is asked, and nothing is charged. */
async function unanswered(
  dependencies: ResponsesDependencies,
  call: Call,
  input: InferenceInput<ResponsesRequest>,
  adapter: Adapter<ResponsesRequest, ResponseObject>,
): Promise<HttpAnswer> {
  const prepared = await prepare(dependencies, call, input, adapter, null);
  const { limits } = dependencies;
  return streamed({ call, adapter, prepared, events: emptyAnswer(prepared.identity), headers: {}, limits });
}

async function* emptyAnswer(
  identity: Omit<Extract<InferenceEvent, { type: "response-start" }>, "type">,
): AsyncGenerator<readonly InferenceEvent[], void, void> {
  yield [
    { type: "response-start", ...identity },
    { type: "response-end", reason: "stop" },
  ];
}
