// A fake engine over raw TCP that fails in the ways of FailoverBench (github.com/failoverbench/failoverbench): the
// model's name selects the fault, and every request is recorded. It speaks the protocol of the requested path.

import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { type Dialect, dialectOf } from "./dialects.ts";

export interface Wall {
  url: string;
  /** The models of the requests, in the order of their arrival. */
  asked: string[];
  /** Sets the fault, by its name, of all later requests for this model. */
  set(model: string, fault: string): void;
  /** Requests for this model that the engine has left waiting continue with the fault of this name. */
  resume(model: string, fault: string): void;
  stop(): Promise<void>;
}

/** The text of a complete response: sixty words, each of which is a token. */
export const canonical = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");

interface Asked {
  /** The number of earlier requests for this model. */
  before: number;
  isStreamed: boolean;
  /** The number of words in the incomplete response that the engine is asked to continue. */
  saidWords: number;
  socket: Socket;
  dialect: Dialect;
}

interface Body {
  model: string;
  stream?: boolean;
  continue_final_message?: boolean;
  messages?: { content: string }[];
}

/**
 * The number of words in the last message, if the request asks to continue that message in the way of vLLM and SGLang.
 */
function saidWordsOf({ continue_final_message, messages }: Body): number {
  return continue_final_message ? messages!.at(-1)!.content.trim().split(" ").length : 0;
}

const sse = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const frame = (data: string) => {
  const text = `data: ${data}\n\n`;
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
};
const event = (data: object) => {
  const { type } = data as { type?: string };
  const text = `${type ? `event: ${type}\n` : ""}data: ${JSON.stringify(data)}\n\n`;
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
};
const wordsOf = ({ opening, word }: Dialect, from: number, to: number) =>
  (from === 0 ? opening : []).map(event).join("") +
  canonical
    .split(" ")
    .slice(from, to)
    .map((one, index) => event(word(from + index === 0 ? one : ` ${one}`)))
    .join("");
const endOf = ({ closing, mark }: Dialect, isMarked = true) =>
  `${closing.map(event).join("")}${isMarked && mark ? frame(mark) : ""}0\r\n\r\n`;
const whole = ({ whole }: Dialect, content: string | null = canonical) => JSON.stringify(whole(content));

/** The events of a response without content. */
function emptied({ closing, opening }: Dialect): object[] {
  const isOfPart = (one: object) => /content_block|output_|content_part/.test((one as { type?: string }).type ?? "");
  const ends = closing.filter((one) => !isOfPart(one));
  return [
    ...opening,
    ...ends.map((one) => ("response" in one ? { ...one, response: { ...(one.response as object), output: [] } } : one)),
  ].filter((one) => !isOfPart(one));
}

/** The events that end a Chat Completions stream, with its number of output tokens. */
const ended = (tokens: number): object[] => [
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage: { prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens } },
];

function json(status: number, body: string, headers = ""): string {
  return `HTTP/1.1 ${status} Whatever\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
const refusal = (status: number, code: string, headers = "") =>
  json(status, JSON.stringify({ error: { message: `the wall says ${code}`, code } }), headers);

function answer({ socket, isStreamed, dialect, saidWords }: Asked, isMarked = true): void {
  if (!isStreamed) return void socket.write(json(200, whole(dialect)));
  socket.write(sse + wordsOf(dialect, saidWords, 60) + endOf(dialect, isMarked));
}

/** Sends the first words of a response, and then pauses, so that the client reads them before it reads the rest. */
function begin({ socket, dialect }: Asked, count: number, then: () => void): void {
  socket.write(sse + wordsOf(dialect, 0, count));
  setTimeout(then, 400);
}

const cut = (asked: Asked) => {
  if (asked.isStreamed) return begin(asked, 40, () => asked.socket.destroy());
  asked.socket.write(json(200, whole(asked.dialect)).slice(0, -40));
  asked.socket.end();
};

/** The faults. A model whose name begins with the key has the fault. */
const faults: Record<string, (asked: Asked) => void> = {
  ok: answer,
  s01: (asked) =>
    asked.before === 0 ? void asked.socket.write(refusal(429, "rate_limited", "retry-after: 2\r\n")) : answer(asked),
  s02: ({ socket }) => void socket.write(refusal(429, "rate_limited")),
  s03: (asked) => (asked.before === 0 ? void asked.socket.write(refusal(500, "oops")) : answer(asked)),
  s04: ({ socket }) => void socket.write(refusal(503, "overloaded")),
  s05: ({ socket }) => void socket.resetAndDestroy(),
  s06: () => {},
  s07: (asked) => {
    if (asked.isStreamed) asked.socket.write(sse);
    setTimeout(() => asked.socket.end(), 20_000).unref();
  },
  s08: cut,
  s09: (asked) =>
    asked.isStreamed
      ? begin(asked, 20, () => {})
      : void asked.socket.write(json(200, whole(asked.dialect)).slice(0, -40)),
  s10: (asked) =>
    asked.isStreamed
      ? begin(asked, 9, () =>
          asked.socket.write(frame("{oops}") + wordsOf(asked.dialect, 10, 60) + endOf(asked.dialect)),
        )
      : void asked.socket.write(json(200, `${whole(asked.dialect)}}`)),
  s11: (asked) => answer(asked, false),
  s12: ({ socket }) =>
    void socket.write(
      json(
        400,
        JSON.stringify({
          error: { message: "This model's maximum context length is 4096 tokens", code: "context_length_exceeded" },
        }),
      ),
    ),
  s13: ({ socket }) => void socket.write(refusal(400, "content_policy_violation")),
  s14: cut,
  s15: ({ socket }) => void socket.write(refusal(503, "overloaded")),
  s16: ({ socket }) => void socket.write(refusal(503, "overloaded")),
  // Additional faults, which are not in FailoverBench.
  unknown: ({ socket }) => void socket.write(refusal(404, "no_such_model")),
  forbidden: ({ socket }) => void socket.write(refusal(401, "wrong_key")),
  html: ({ socket }) =>
    void socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\n<h1>x"),
  garbage: ({ socket }) => void socket.write("SSH-2.0-OpenSSH_9.2p1\r\n\r\n"),
  empty: ({ socket, isStreamed, dialect }) =>
    void socket.write(
      isStreamed ? sse + endOf({ ...dialect, closing: emptied(dialect) }) : json(200, whole(dialect, null)),
    ),
  filtered: ({ socket, dialect }) =>
    void socket.write(
      sse + endOf({ ...dialect, closing: [{ choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] }] }),
    ),
  /** A response without content, which reports one output token, or zero. */
  silent: ({ socket, dialect }) => void socket.write(sse + endOf({ ...dialect, closing: ended(1) })),
  nothing: ({ socket, dialect }) => void socket.write(sse + endOf({ ...dialect, closing: ended(0) })),
  forever: ({ socket }) => void socket.write(refusal(429, "rate_limited", "retry-after: 1e9\r\n")),
};

export async function startWall(): Promise<Wall> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const chosen = new Map<string, string>();
  const waiting = new Map<string, Asked[]>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || text.length < head + 4 + length) return;
      const request = text.slice(0, head);
      if (!request.startsWith("POST ")) {
        text = text.slice(head + 4 + length);
        socket.write(refusal(404, "not_found"));
        return;
      }
      const body = JSON.parse(text.slice(head + 4, head + 4 + length)) as Body;
      text = text.slice(head + 4 + length);
      const dialect = dialectOf(/^POST (\S+)/.exec(request)![1]!, canonical);
      const before = asked.filter((model) => model === body.model).length;
      asked.push(body.model);
      const fault = chosen.get(body.model) ?? body.model.split("-")[0]!;
      const one = { before, isStreamed: body.stream === true, saidWords: saidWordsOf(body), socket, dialect };
      if (fault === "s06") waiting.set(body.model, [...(waiting.get(body.model) ?? []), one]);
      faults[fault]!(one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    set: (model, fault) => void chosen.set(model, fault),
    resume(model, fault) {
      for (const one of waiting.get(model) ?? []) faults[fault]!(one);
      waiting.delete(model);
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
