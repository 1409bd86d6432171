// The engine of the capacity rows, in a process of its own. It sends streamed chat completions over plain sockets with
// a single timer, so that it can send far more events per second than the measured programs. Like real engines, it
// sends the finish reason, the usage and [DONE] together. A GET returns what it has sent to streams whose caller left.
// Prints its port.

import type { Socket } from "bun";
import { type Behaviour, behaviourOf, tagLength, tagPrefix, textOf, word } from "./asks.ts";
import { wires } from "./engine.ts";

const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const end = "0\r\n\r\n";
const tick_ms = 1;

interface Stream {
  socket: Socket<Asked>;
  model: string;
  tag: string;
  behaviour: Behaviour;
  at: number;
  due_ms: number;
}

/**
 * The state of a connection: the received part of its next request, and the bytes that wait until the socket accepts
 * more.
 */
interface Asked {
  text: string;
  unwritten: Uint8Array | null;
}

export interface Sent {
  tokens: number;
  /** The number of streams whose caller left after their first token, and of the tokens that had been sent to them. */
  left: { streams: number; tokens: number };
}

export function startFlowEngine() {
  const sent: Sent = { tokens: 0, left: { streams: 0, tokens: 0 } };
  /** The streams by the millisecond at which their next token is due. */
  const due = new Map<number, Stream[]>();
  const tokens = new Map<string, Uint8Array>();
  let ticked_ms = Math.floor(performance.now());

  const wait = (stream: Stream, ms: number) => {
    stream.due_ms += ms;
    const at = Math.max(ticked_ms + 1, Math.round(stream.due_ms));
    const others = due.get(at);
    if (others) others.push(stream);
    else due.set(at, [stream]);
  };

  const tokenOf = (model: string) => {
    const made = tokens.get(model) ?? Buffer.from(chunk(wires.chat.token(model, word, 0)));
    tokens.set(model, made);
    return made;
  };

  const step = (stream: Stream) => {
    const { socket, model, tag, behaviour, at } = stream;
    if (socket.readyState !== 1) {
      if (at > 0) sent.left.streams += 1;
      sent.left.tokens += at;
      return;
    }
    if (at === 0) {
      write(
        socket,
        Buffer.from(head + chunk(wires.chat.begin(model, behaviour, "") + wires.chat.token(model, tag, 0))),
      );
    } else if (at < behaviour.tokens) {
      write(socket, tokenOf(model));
    } else {
      write(socket, Buffer.from(chunk(wires.chat.end(model, textOf(tag, behaviour), behaviour, "")) + end));
      return;
    }
    stream.at += 1;
    sent.tokens += 1;
    wait(stream, behaviour.every_ms);
  };

  setInterval(() => {
    const now_ms = Math.floor(performance.now());
    for (; ticked_ms < now_ms; ticked_ms++) {
      const streams = due.get(ticked_ms + 1);
      due.delete(ticked_ms + 1);
      for (const stream of streams ?? []) step(stream);
    }
  }, tick_ms);

  return Bun.listen<Asked>({
    ...{ hostname: "127.0.0.1", port: 0 },
    socket: {
      open(socket) {
        socket.data = { text: "", unwritten: null };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        const asked = socket.data;
        asked.text += bytes.toString("latin1");
        if (asked.text.startsWith("GET ")) {
          write(socket, Buffer.from(answerOf(sent)));
          asked.text = "";
          return;
        }
        const at = asked.text.indexOf("\r\n\r\n");
        const length = Number(/content-length: *(\d+)/i.exec(asked.text)?.[1] ?? 0);
        if (at < 0 || asked.text.length < at + 4 + length) return;
        const model = /"model":"([^"]+)"/.exec(asked.text)?.[1] ?? "";
        const tagAt = asked.text.indexOf(tagPrefix);
        const tag = asked.text.slice(tagAt, tagAt + tagLength);
        asked.text = "";
        const behaviour = behaviourOf(model);
        wait({ socket, model, tag, behaviour, at: 0, due_ms: performance.now() }, behaviour.wait_ms);
      },
      drain(socket) {
        const { unwritten } = socket.data;
        socket.data.unwritten = null;
        if (unwritten) write(socket, unwritten);
      },
      close() {},
      error() {},
    },
  });
}

function answerOf(sent: Sent): string {
  const json = JSON.stringify(sent);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n${json}`;
}

function write(socket: Socket<Asked>, bytes: Uint8Array): void {
  const { data } = socket;
  if (data.unwritten) {
    data.unwritten = Buffer.concat([data.unwritten, bytes]);
    return;
  }
  const written = Math.max(0, socket.write(bytes));
  if (written < bytes.length) data.unwritten = bytes.subarray(written);
}

if (import.meta.main) console.log(startFlowEngine().port);
