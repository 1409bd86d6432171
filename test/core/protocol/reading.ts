/** An engine's bytes, read as the service reads them: bytes → frames → events → the whole answer. */
import { expect } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fold, type Result } from "../../../src/core/inference/result.ts";
import { MessageStreamEvent } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import type { EngineDecoder, ResponseIdentity, UpstreamCodec } from "../../../src/core/protocol/codec.ts";
import { ChatCompletionChunk } from "../../../src/core/protocol/openai-chat/contract.ts";
import { ResponsesStreamEvent } from "../../../src/core/protocol/openai-responses/contract.ts";
import { encodeSse, SseDecoder, type SseMessage } from "../../../src/core/sse/decode.ts";
import { StreamReader } from "../../../src/core/upstream/stream-reader.ts";
import { schemaProblems } from "../../harness/frames.ts";
import { streamProblems } from "../../harness/streams.ts";
import { grammarProblem } from "./grammar.ts";

type Reader = Pick<UpstreamCodec, "stream">;

export const bytes = (content: string) => new TextEncoder().encode(content);

export function decodedBy(
  { stream }: Reader,
  identity: ResponseIdentity,
  chunks: readonly Uint8Array[],
): InferenceEvent[] {
  const frames = new SseDecoder();
  const decoder = stream.decoder(identity);
  return [
    ...chunks.flatMap((chunk) => frames.push(chunk)).flatMap((message) => decoder.push(message)),
    ...decoder.end(),
  ];
}

/**
 * Decodes byte by byte, because no quirk may depend on where the bytes were cut. The events must be grammatical,
 * whatever the engine sent.
 */
export function decodedBytewise(codec: Reader, identity: ResponseIdentity, raw: string): InferenceEvent[] {
  const events = decodedBy(
    codec,
    identity,
    [...bytes(raw)].map((byte) => new Uint8Array([byte])),
  );
  expect(grammarProblem(events)).toBeNull();
  return events;
}

/** Reads the pieces as the service reads an engine's stream. */
export async function readBy(decoder: EngineDecoder, pieces: readonly Uint8Array[]): Promise<InferenceEvent[]> {
  const reader = new StreamReader(decoder);
  const events: InferenceEvent[] = [];
  for (const piece of pieces) events.push(...(await reader.push([piece])));
  return [...events, ...(await reader.end())];
}

export function folded(events: readonly InferenceEvent[]): Result {
  const fold = new Fold();
  for (const event of events) fold.push(event);
  return fold.result();
}

const problemsOf = schemaProblems();
const events = { chat: ChatCompletionChunk, messages: MessageStreamEvent, responses: ResponsesStreamEvent };

/** The first problem of a client's stream, by its grammar and by the contract of its events; null if there is none. */
export function streamProblem(client: keyof typeof events, frames: readonly SseMessage[]): string | null {
  return streamProblems[client](frames.map(encodeSse).join(""), events[client], problemsOf)[0] ?? null;
}
