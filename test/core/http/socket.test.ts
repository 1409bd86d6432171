/** How a WebSocket behaves without a network: it waits for a slow reader, and ends at its maximum age. */
import { describe, expect, test } from "bun:test";
import { MemoryBudget } from "../../../src/core/body/memory.ts";
import type { Call } from "../../../src/core/http/call.ts";
import { Socket, type SocketOwner } from "../../../src/core/http/socket.ts";
import { Sockets } from "../../../src/core/http/sockets.ts";
import { connectionLimits, ResponsesConnection } from "../../../src/features/responses/websocket/connection.ts";
import { Recent } from "../../../src/features/responses/websocket/recent.ts";
import type { NodeDependencies } from "../../../src/node/app.ts";
import { plentifulBounds } from "../../harness/bounds.ts";
import { until } from "../../harness/until.ts";

/**
 * A socket and a stand-in for the runtime's side of it: the messages that were sent, and the code with which it was
 * closed. If `isFull`, `send` reports a full buffer.
 */
function opened(owner: SocketOwner) {
  const runtime = { sent: [] as string[], code: 0, isFull: false };
  const socket = new Socket(owner);
  socket.opened({
    send(text: string) {
      runtime.sent.push(text);
      return runtime.isFull ? -1 : text.length;
    },
    close: (code: number) => {
      runtime.code = code;
    },
  } as never);
  return { socket, runtime };
}

const nobody: SocketOwner = { opened() {}, received() {}, closed() {} };

describe("a socket", () => {
  test("holds one message that its client has not read, and no more", async () => {
    const { socket, runtime } = opened(nobody);
    await socket.send("one");
    runtime.isFull = true;
    const sending = [socket.send("two"), socket.send("three"), socket.send("four")];
    await Bun.sleep(0);
    expect(runtime.sent).toEqual(["one", "two"]);
    socket.drained();
    await sending[0];
    await Bun.sleep(0);
    expect(runtime.sent).toEqual(["one", "two", "three"]);
    runtime.isFull = false;
    socket.drained();
    await Promise.all(sending);
    expect(runtime.sent).toEqual(["one", "two", "three", "four"]);
  });

  test("that is gone lets no sender wait", async () => {
    const { socket, runtime } = opened(nobody);
    runtime.isFull = true;
    const sending = [socket.send("one"), socket.send("two")];
    socket.closed();
    await Promise.all(sending);
    expect([runtime.sent, socket.isOpen]).toEqual([["one"], false]);
  });

  test("of a connection that is an hour old gets an error, and is closed", async () => {
    expect(connectionLimits.age_ms).toBe(3_600_000);
    const dependencies = {
      bounds: plentifulBounds(),
      standings: { begin: () => ({ [Symbol.dispose]() {} }) },
      newId: () => "0".repeat(32),
    } as unknown as NodeDependencies;
    const call = { request: new Request("http://localhost/"), client: "", connection: { isLocal: () => true } };
    const principal = { key: { id: "key_1" } } as never;
    const limits = { ...connectionLimits, age_ms: 20 };
    const connection = new ResponsesConnection(dependencies, call as unknown as Call, principal, limits);
    expect(connection.enter()).toBe(true);
    const { runtime } = opened(connection);
    await until(() => runtime.code !== 0, 2000);
    expect(runtime.code).toBe(1000);
    expect(JSON.parse(runtime.sent[0]!)).toMatchObject({
      ...{ type: "error", status: 400, code: "websocket_connection_limit_reached" },
      error: { code: "websocket_connection_limit_reached" },
    });
    connection.closed();
    expect(dependencies.bounds.sockets.size).toBe(0);
  });
});

test("a node and a key have a number of sockets, and a place is given back once", () => {
  const sockets = new Sockets({ frame_bytes_max: 1, node_max: 3, key_max: 2 });
  const socket = { retire() {} };
  const places = ["a", "a", "b"].map((key) => sockets.enter(key, socket));
  expect(places.every((place) => place !== null)).toBe(true);
  expect([sockets.enter("a", socket), sockets.enter("c", socket)]).toEqual([null, null]);
  places[2]![Symbol.dispose]();
  places[2]![Symbol.dispose]();
  expect(sockets.size).toBe(2);
  expect(sockets.enter("a", socket)).toBeNull();
  expect(sockets.enter("c", socket)).not.toBeNull();
  sockets.retire();
  places[0]![Symbol.dispose]();
  expect(sockets.enter("d", socket)).toBeNull();
});

describe("conversations that are kept", () => {
  const budget = () => new MemoryBudget({ node_bytes_max: 100, key_bytes_max: 100 }, () => false);

  test("are the newest of each lane, within the bytes of a connection", () => {
    const memory = budget();
    const recent = new Recent(memory.reservation("key_1"), { bytes_max: 10, lanes_max: 2 });
    recent.keep("a", "resp_1", "1234");
    recent.keep("a", "resp_2", "12345");
    expect([recent.find("resp_1"), recent.find("resp_2")?.items]).toEqual([null, "12345"]);
    recent.keep("b", "resp_3", "123456");
    expect([recent.find("resp_2"), recent.find("resp_3")?.items, memory.bytes]).toEqual([null, "123456", 6]);
    recent.keep("c", "resp_4", "1");
    recent.keep("d", "resp_5", "2");
    expect([recent.find("resp_3"), recent.find("resp_4")?.items]).toEqual([null, "1"]);
    recent.keep("c", "resp_6", "12345678901");
    expect([recent.find("resp_4"), recent.find("resp_6"), memory.bytes]).toEqual([null, null, 1]);
    recent.evict("resp_5");
    expect([recent.find("resp_5"), memory.bytes]).toEqual([null, 0]);
  });

  test("are left out where the key has no memory left, and given back at the end", () => {
    const memory = budget();
    const other = memory.reservation("key_1");
    other.growTo(98);
    const recent = new Recent(memory.reservation("key_1"), { bytes_max: 10, lanes_max: 2 });
    recent.keep("a", "resp_1", "1234");
    expect(recent.find("resp_1")).toBeNull();
    recent.keep("a", "resp_2", "1");
    expect([recent.find("resp_2")?.items, memory.bytes]).toEqual(["1", 99]);
    recent[Symbol.dispose]();
    expect(memory.bytes).toBe(98);
    // Stores a response of a socket that has closed already.
    recent.keep("a", "resp_3", "1");
    expect([recent.find("resp_3"), memory.bytes]).toEqual([null, 98]);
  });
});
