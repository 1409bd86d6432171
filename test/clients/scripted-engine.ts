// An engine that says what it is told to, turn by turn, and remembers what it was asked: for agents, whose work takes
// more turns than the simulator plays.

export interface Turn {
  reasoning?: string;
  text?: string;
  /** All in one answer. `arguments` as JSON text, or what to make it of. */
  calls?: { name: string; arguments: string | object }[];
  /** The fragments of its calls come in turn, one of each. */
  interleaved?: true;
  /** Why it ends, where not for its calls or its end. */
  finish?: "length" | "content_filter";
  /** Refuses instead of all this, with status 400. */
  refuses?: { code: string; message: string };
  /** Breaks the connection before it says why it ended. */
  cut?: true;
  /** Milliseconds between the head of the answer and its first piece. */
  silent_ms?: number;
}

/** A Chat Completions request, as far as tests look at it. */
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
  /** With `/v1`. */
  url: string;
  /** From now on these turns, in order, or what is said to each request; what was asked before is forgotten. */
  play(turns: Turn[] | ((asked: ChatAsked) => Turn)): void;
  /** Since the last `play`. */
  asked: ChatAsked[];
  stop(): void;
}

const piece_chars = 16;
const cut_pause_ms = 20;
/** The finish, and the usage after it. */
const ending_chunks = 2;

/** `report` is what it says of the usage of a turn; without it a round number. */
export function startScriptedEngine(report?: (asked: ChatAsked, turn: Turn) => EngineUsage): ScriptedEngine {
  const script: { next(asked: ChatAsked): Turn | undefined; asked: ChatAsked[] } = { next: () => undefined, asked: [] };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // Without it Bun would write of every cut that it was not handled.
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
        // What was written gets this long to leave: a reset takes with it what is still on its way.
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

/** The first of each list, then the second of each, and so on. */
function inTurn<Item>(lists: Item[][]): Item[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

function pieces(text: string): string[] {
  return text.match(new RegExp(`[^]{1,${piece_chars}}`, "g")) ?? [];
}
