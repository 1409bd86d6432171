// An engine that responds as a test's script says, turn by turn, and records its requests. It is for tests of agents,
// which need more turns than the simulator supports.

export interface Turn {
  reasoning?: string;
  text?: string;
  /** The tool calls of this turn, all in one response. `arguments` is JSON text, or an object to be written as JSON. */
  calls?: { name: string; arguments: string | object }[];
  /** Sends the fragments of the calls in alternation: one fragment of each call, then the next of each. */
  interleaved?: true;
  /** The finish reason; by default `tool_calls` if the turn has calls, else `stop`. */
  finish?: "length" | "content_filter";
  /** If set, the request is refused with status 400 and this error, and the rest of the turn is ignored. */
  refuses?: { code: string; message: string };
  /** Whether the connection is broken before the finish reason is sent. */
  cut?: true;
  /** Milliseconds between the response's headers and its first chunk. */
  silent_ms?: number;
}

/** The members of a Chat Completions request that tests read. */
export interface ChatAsked {
  messages: {
    role: string;
    content: unknown;
    reasoning_content?: string;
    tool_calls?: { function: { name: string; arguments: string } }[];
  }[];
  tools?: { function: { name: string; description?: string } }[];
}

export interface EngineUsage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
}

export interface ScriptedEngine {
  /** The base URL, with `/v1`. */
  url: string;
  /**
   * Sets the turns for the next requests, in order, or a function that returns the turn for each request. Clears the
   * recorded requests.
   */
  play(turns: Turn[] | ((asked: ChatAsked) => Turn)): void;
  /** The requests since the last `play`. */
  asked: ChatAsked[];
  stop(): void;
}

const piece_chars = 16;
const cut_pause_ms = 20;
/** The last two chunks of a response: the finish reason, and then the usage. */
const ending_chunks = 2;

/**
 * Starts the engine. `report` returns the usage that the engine reports for a turn. Without it the engine reports 100
 * prompt tokens, and one output token per delta.
 */
export function startScriptedEngine(report?: (asked: ChatAsked, turn: Turn) => EngineUsage): ScriptedEngine {
  const script: { next(asked: ChatAsked): Turn | undefined; asked: ChatAsked[] } = { next: () => undefined, asked: [] };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // In development mode, Bun would print an unhandled error for every connection that the script breaks.
    development: false,
    idleTimeout: 0,
    error: () => new Response(null, { status: 500 }),
    async fetch(request) {
      const asked = (await request.json()) as ChatAsked;
      script.asked.push(asked);
      const turn = script.next(asked);
      if (!turn) return Response.json({ error: { message: "the script is over" } }, { status: 500 });
      if (turn.refuses) return Response.json({ error: turn.refuses }, { status: 400 });
      return new Response(bodyOf(turn, report?.(asked, turn)), { headers: { "content-type": "text/event-stream" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    play(turns) {
      const rest = typeof turns === "function" ? [] : [...turns];
      script.next = typeof turns === "function" ? turns : () => rest.shift();
      script.asked = [];
    },
    get asked() {
      return script.asked;
    },
    stop: () => void server.stop(true),
  };
}

function bodyOf(turn: Turn, usage?: EngineUsage): ReadableStream<string> {
  const { cut, silent_ms = 0 } = turn;
  const chunks = chunksOf(turn, usage);
  const frames = cut ? chunks.slice(0, -ending_chunks).map(frame) : [...chunks.map(frame), "data: [DONE]\n\n"];
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(": head\n\n");
      if (silent_ms > 0) await Bun.sleep(silent_ms);
    },
    async pull(controller) {
      const next = frames.shift();
      if (next !== undefined) controller.enqueue(next);
      else if (cut) {
        // Waits until the operating system has sent the written bytes, because a connection reset would discard unsent
        // ones.
        await Bun.sleep(cut_pause_ms);
        controller.error(new Error("cut, as the script has it"));
      } else controller.close();
    },
  });
}

const frame = (chunk: object) => `data: ${JSON.stringify({ ...head, ...chunk })}\n\n`;
const head = { id: "chatcmpl-scripted", object: "chat.completion.chunk", created: 1_790_000_000, model: "scripted" };

function chunksOf(
  { reasoning = "", text = "", calls = [], interleaved, finish }: Turn,
  reported?: EngineUsage,
): object[] {
  const fragments = calls.map(({ name, arguments: given }, index) => {
    const id = `call_${crypto.randomUUID()}`;
    const written = typeof given === "string" ? given : JSON.stringify(given);
    const opening = { index, id, type: "function", function: { name, arguments: "" } };
    return [opening, ...pieces(written).map((part) => ({ index, function: { arguments: part } }))];
  });
  const deltas = [
    ...pieces(reasoning).map((reasoning_content) => ({ reasoning_content })),
    ...pieces(text).map((content) => ({ content })),
    ...(interleaved ? inTurn(fragments) : fragments.flat()).map((call) => ({ tool_calls: [call] })),
  ];
  const usage = reported ?? { prompt_tokens: 100, completion_tokens: deltas.length };
  const finish_reason = finish ?? (calls.length > 0 ? "tool_calls" : "stop");
  return [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason }] },
    { choices: [], usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens } },
  ];
}

/** Interleaves lists: the first item of each list, then the second of each, and so on. */
function inTurn<Item>(lists: Item[][]): Item[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

function pieces(text: string): string[] {
  return text.match(new RegExp(`[^]{1,${piece_chars}}`, "g")) ?? [];
}
