// The requests to the targets in each protocol, and the check that a response belongs to its request, because a fast
// wrong response is a failure. The name of the engine's model determines the engine's behaviour, and each response
// begins with the tag in its request.

export const protocols = ["chat", "messages", "responses"] as const;
export type Protocol = (typeof protocols)[number];

/** The kinds of requests: for a response in one of the three protocols, or for an embedding. */
export const asked = [...protocols, "embeddings"] as const;
export type Asked = (typeof asked)[number];

export const pathOf: Record<Asked, string> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
  embeddings: "/v1/embeddings",
};

export interface Behaviour {
  /** The time before the response begins, in milliseconds. */
  wait_ms: number;
  /** The number of tokens in the response, including its tag. */
  tokens: number;
  /** The time between two tokens of a stream, in milliseconds. */
  every_ms: number;
  /** The input tokens that the engine reports for the prompt. */
  inputTokens: number;
}

/** The engine's name for a model with this behaviour. */
export function modelOf({ wait_ms, tokens, every_ms, inputTokens }: Behaviour): string {
  return `bench-${wait_ms}-${tokens}-${every_ms}-${inputTokens}`;
}

export function behaviourOf(model: string): Behaviour {
  const [wait_ms = 0, tokens = 0, every_ms = 0, inputTokens = 0] = model.split("-").slice(1).map(Number);
  return { wait_ms, tokens, every_ms, inputTokens };
}

export const tagPrefix = "tag-";
export const tagLength = tagPrefix.length + 8;
export const word = " word";

export const tagOf = (count: number) => tagPrefix + count.toString(36).padStart(8, "0");
export const textOf = (tag: string, { tokens }: Behaviour) => tag + word.repeat(tokens - 1);

/** The length of an embedding vector. Its first numbers are the character codes of the request's tag. */
export const dimensions = 256;
const scale = 1_000;
export const vectorOf = (tag: string) =>
  Array.from({ length: dimensions }, (_, at) => (at < tagLength ? tag.charCodeAt(at) / scale : 0.0182031));
const tagIn = (vector: readonly number[]) =>
  String.fromCharCode(...vector.slice(0, tagLength).map((number) => Math.round(number * scale)));

export interface Expected {
  protocol: Asked;
  isStreamed: boolean;
  tag: string;
  behaviour: Behaviour;
}

/** The content of one response, assembled from all its frames. */
interface Said {
  text: string;
  /** The number of events that end a response. */
  ends: number;
  inputTokens: number | null;
  outputTokens: number | null;
}

/** Returns the problem of a response with status 200; null if it is correct. */
export function wrong(body: string, { protocol, isStreamed, tag, behaviour }: Expected): string | null {
  let said: Said;
  try {
    said =
      isStreamed && protocol !== "embeddings" ? streamed[protocol](framesOf(body)) : whole[protocol](JSON.parse(body));
  } catch (cause) {
    return `it cannot be read: ${String(cause)}; ${body.slice(0, 200)}`;
  }
  const { text, ends, inputTokens, outputTokens } = said;
  if (text !== textOf(tag, behaviour)) return `its text is ${JSON.stringify(text.slice(0, 80))}, asked with ${tag}`;
  if (ends !== 1) return `it has ${ends} ends`;
  if (outputTokens !== behaviour.tokens) return `it reports ${outputTokens} tokens of ${behaviour.tokens}`;
  if (inputTokens !== null && inputTokens !== behaviour.inputTokens) return `it reports ${inputTokens} tokens of input`;
  return null;
}

interface Frame {
  type?: string;
  [name: string]: unknown;
}

/** The data of each frame; `[DONE]` has the type "done". */
function framesOf(body: string): Frame[] {
  if (!body.endsWith("\n\n")) throw new Error("the last frame is cut");
  return body
    .slice(0, -2)
    .split("\n\n")
    .flatMap((frame) => {
      const at = frame.startsWith("data: ") ? 6 : frame.indexOf("\ndata: ") + 7;
      if (frame.startsWith(":")) return [];
      if (at < 6) throw new Error(`a frame without data: ${frame.slice(0, 80)}`);
      const data = frame.slice(at);
      return [data === "[DONE]" ? { type: "done" } : (JSON.parse(data) as Frame)];
    });
}

// biome-ignore lint/suspicious/noExplicitAny: parsed responses, read without types
type Json = any;

const whole: Record<Asked, (reply: Json) => Said> = {
  embeddings: ({ data, usage }) => ({
    text: tagIn(data[0].embedding),
    ends: data[0].embedding.length / dimensions,
    inputTokens: usage.prompt_tokens,
    // The usage counts a vector as one token.
    outputTokens: data.length,
  }),
  chat: ({ choices, usage }) => ({
    text: choices[0].message.content,
    ends: choices.filter((choice: Json) => choice.finish_reason === "stop").length,
    inputTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens,
  }),
  messages: ({ content, stop_reason, usage }) => ({
    text: content.map((part: Json) => part.text).join(""),
    ends: stop_reason === "end_turn" ? 1 : 0,
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
  }),
  responses: ({ output, status, usage }) => ({
    text: output.flatMap((item: Json) => item.content.map((part: Json) => part.text)).join(""),
    ends: status === "completed" ? 1 : 0,
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
  }),
};

const streamed: Record<Protocol, (frames: Frame[]) => Said> = {
  chat(frames) {
    const said: Said = { text: "", ends: 0, inputTokens: null, outputTokens: null };
    let finished = 0;
    for (const frame of frames as Json[]) {
      if (frame.type === "done") said.ends += 1;
      const [choice] = frame.choices ?? [];
      said.text += choice?.delta.content ?? "";
      if (choice?.finish_reason) finished += 1;
      said.inputTokens = frame.usage?.prompt_tokens ?? said.inputTokens;
      said.outputTokens = frame.usage?.completion_tokens ?? said.outputTokens;
    }
    return finished === 1 ? said : { ...said, ends: finished };
  },
  messages(frames) {
    const said: Said = { text: "", ends: 0, inputTokens: null, outputTokens: null };
    for (const frame of frames as Json[]) {
      if (frame.type === "content_block_delta") said.text += frame.delta.text;
      if (frame.type === "message_stop" || frame.type === "error") said.ends += frame.type === "error" ? 100 : 1;
      // Only message_delta has the count: message_start is sent before the engine reports it.
      if (frame.type === "message_delta") said.outputTokens = frame.usage.output_tokens;
    }
    return said;
  },
  responses(frames) {
    const said: Said = { text: "", ends: 0, inputTokens: null, outputTokens: null };
    for (const frame of frames as Json[]) {
      if (frame.type === "response.output_text.delta") said.text += frame.delta;
      if (!["response.completed", "response.failed", "response.incomplete"].includes(frame.type)) continue;
      said.ends += frame.type === "response.completed" ? 1 : 100;
      said.inputTokens = frame.response.usage?.input_tokens ?? null;
      said.outputTokens = frame.response.usage?.output_tokens ?? null;
    }
    return said;
  },
};
