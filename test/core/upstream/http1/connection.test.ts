/** One connection and its pauses, if a single read of the socket brings several pieces, as with TLS and large reads. */
import { expect, test } from "bun:test";
import type { Socket } from "bun";
import { Cancellation } from "../../../../src/core/time/cancellation.ts";
import { turns } from "../../../../src/core/time/turns.ts";
import { EngineConnection } from "../../../../src/core/upstream/http1/connection.ts";
import { ReadPauses } from "../../../../src/core/upstream/http1/read-pauses.ts";
import { until } from "../../../harness/until.ts";
import { VirtualClock } from "../../admission/virtual-time.ts";

const pause_ms = 100;
const bytes = (text: string) => new TextEncoder().encode(text);
const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/** A connection on a fake socket, which reports whether it is paused and whether it is open. */
function connected(readersTurns = turns()) {
  const socket = {
    isPaused: false,
    isOpen: true,
    pause() {
      socket.isPaused = true;
    },
    resume() {
      socket.isPaused = false;
    },
    write: (text: string) => text.length,
    terminate() {
      socket.isOpen = false;
    },
  };
  const clock = new VirtualClock();
  const freedWhilePaused: boolean[] = [];
  const owner = {
    freed: () => void freedWhilePaused.push(socket.isPaused),
    closed() {},
    strayed() {},
    calls: { hasUnread: () => false },
    turns: readersTurns,
    pauses: new ReadPauses({ shortest_ms: pause_ms, longest_ms: pause_ms }, clock, () => 0),
  };
  const connection = new EngineConnection(socket as unknown as Socket<object>, owner);
  return { connection, socket, clock, freedWhilePaused };
}

/** Sends a request, and reads the first part of the answer, which is read in portions from then on. */
async function flowing(connection: EngineConnection, signal = new Cancellation()) {
  const asked = connection.ask("POST / HTTP/1.1\r\n\r\n", "", signal);
  connection.received(bytes(`${head}5\r\nfirst\r\n`));
  const reply = await asked;
  await reply.read();
  reply.flow();
  return reply;
}

test("a connection whose answer ends in the read that began a pause is read at once, and the pause of before does not touch the next answer", async () => {
  const { connection, socket, clock, freedWhilePaused } = connected();
  const reply = await flowing(connection);
  connection.received(bytes("1\r\nb\r\n"));
  expect(socket.isPaused).toBe(true);
  connection.received(bytes("0\r\n\r\n"));
  expect(freedWhilePaused).toEqual([false]);
  expect(Buffer.concat((await reply.read())!).toString()).toBe("b");
  expect(await reply.read()).toBeNull();

  await clock.advance(pause_ms / 2);
  await flowing(connection);
  connection.received(bytes("1\r\nc\r\n"));
  expect(socket.isPaused).toBe(true);
  // By now the first pause would be over, but the second one is not.
  await clock.advance(pause_ms / 2);
  expect(socket.isPaused).toBe(true);
  await clock.advance(pause_ms / 2);
  expect(socket.isPaused).toBe(false);
});

test("on a process that is behind, a pause lasts until what was read before has had its turn", async () => {
  const waiting: (() => void)[] = [];
  const { connection, socket, clock } = connected({
    soon: (work, isUrgent) => (isUrgent ? work() : void waiting.push(work)),
  });
  const reply = await flowing(connection);
  const reading = reply.read();
  connection.received(bytes("1\r\nb\r\n"));
  await clock.advance(10 * pause_ms);
  expect([waiting.length, socket.isPaused]).toEqual([1, true]);
  waiting.pop()!();
  expect(socket.isPaused).toBe(false);
  expect(Buffer.concat((await reading)!).toString()).toBe("b");

  // If the reader's turn comes before the end of the pause, the pause is not shortened.
  const next = reply.read();
  connection.received(bytes("1\r\nc\r\n"));
  waiting.pop()!();
  expect(socket.isPaused).toBe(true);
  expect(Buffer.concat((await next)!).toString()).toBe("c");
  await clock.advance(pause_ms);
  expect(socket.isPaused).toBe(false);
});

test("of a stream whose reader stops, what the system holds is read, paused or not: a late process pauses nothing", async () => {
  const { connection, socket } = connected();
  const leaving = new Cancellation();
  const reply = await flowing(connection, leaving);
  const reading = reply.read();
  leaving.abort("left");
  expect(socket.isOpen).toBe(true);
  connection.received(bytes("1\r\nb\r\n"));
  await until(() => !socket.isOpen);
  expect(Buffer.concat((await reading)!).toString()).toBe("b");
  expect(await reply.read().catch((cause) => cause)).toBe("left");
});

test("a connection that may not serve again is closed by us when its answer is whole: the engine may never close it", async () => {
  const { connection, socket, freedWhilePaused } = connected();
  const asked = connection.ask("POST / HTTP/1.1\r\n\r\n", "", new Cancellation());
  connection.received(bytes("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nab"));
  expect(Buffer.concat((await (await asked).read())!).toString()).toBe("ab");
  expect([socket.isOpen, connection.isUsable, freedWhilePaused]).toEqual([false, false, []]);
});
