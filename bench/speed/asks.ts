// What is asked of a target in each protocol, and whether an answer is the one that was asked for: a fast wrong answer is a
// failure. The engine does what the name of its model says, and begins each answer with the tag of its question.

export const protocols = ["chat", "messages", "responses"] as const;
export type Protocol = (typeof protocols)[number];

export const pathOf: Record<Protocol, string> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};

export interface Behaviour {
  /** Before the answer begins. */
  wait_ms: number;
  /** Of the answer, its tag included. */
  tokens: number;
  /** Between two tokens of a stream. */
  every_ms: number;
  /** What it reports for the prompt. */
  inputTokens: number;
}

/** The engine's name for a model that behaves so. */
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

export interface Expected {
  protocol: Protocol;
  isStreamed: boolean;
  tag: string;
  behaviour: Behaviour;
}

/** What one answer says, put together from all its frames. */
interface Said {
  text: string;
  /** Events that end an answer. */
  ends: number;
  inputTokens: number | null;
  outputTokens: number | null;
}

/** Null, or what is wrong with an answer of status 200. */
export function wrong(body: string, { protocol, isStreamed, tag, behaviour }: Expected): string | null {
  let said: Said;
  try {
    said = isStreamed ? streamed[protocol](framesOf(body)) : whole[protocol](JSON.parse(body));
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

// biome-ignore lint/suspicious/noExplicitAny: what a client without types reads
type Json = any;

const whole: Record<Protocol, (reply: Json) => Said> = {
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
      // The first frame comes before the engine reports.
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
