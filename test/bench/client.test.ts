/** The driver's client gives the same answer however its bytes are cut, and fails if an answer is incomplete. */
import { afterEach, describe, expect, test } from "bun:test";
import { type Pool, pool, unchunked } from "../../bench/speed/client.ts";

const request = { method: "POST" as const, path: "/", headers: {}, body: "{}", mark: "tag-1" };
const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\ndata: tag-1\r\n3\r\nabc\r\n0\r\n\r\n";
const measured = "HTTP/1.1 201 Created\r\nContent-Length: 14\r\n\r\ndata: tag-1abc";

let ending: (() => void)[] = [];
afterEach(() => {
  for (const end of ending) end();
  ending = [];
});

/**
 * Starts a server that answers each request with these pieces, each written after the one before was sent. Returns a
 * pool of connections to it.
 */
function serving(pieces: string[], closes = false): Pool {
  const server = Bun.listen({
    ...{ hostname: "127.0.0.1", port: 0 },
    socket: {
      async data(socket) {
        for (const piece of pieces) {
          socket.write(piece);
          socket.flush();
          await new Promise(setImmediate);
        }
        if (closes) socket.end();
      },
    },
  });
  const connections = pool(`http://127.0.0.1:${server.port}`);
  ending.push(() => {
    connections.close();
    server.stop(true);
  });
  return connections;
}

describe.each([
  ["in chunks", chunked, 200],
  ["with a length", measured, 201],
] as const)("an answer %s", (_, answer, status) => {
  test("is the same for any cut, twice on one connection", async () => {
    for (let at = 1; at < answer.length; at++) {
      const connections = serving([answer.slice(0, at), answer.slice(at)]);
      for (let time = 0; time < 2; time++) {
        const reply = await connections.ask(request);
        expect({ at, status: reply.status, body: reply.body }).toEqual({ at, status, body: "data: tag-1abc" });
        expect(reply.marked_ms).not.toBeNull();
      }
    }
  });

  test("that is cut off is none", async () => {
    const connections = serving([answer.slice(0, -1)], true);
    await expect(connections.ask(request)).rejects.toThrow("closed before the answer was whole");
  });
});

test("a chunk of another length than it says is noticed", () => {
  expect(unchunked("3\r\nabc\r\n0\r\n\r\n")).toBe("abc");
  for (const wrong of ["2\r\nabc\r\n0\r\n\r\n", "4\r\nabc\r\n0\r\n\r\n", "\r\nabc\r\n0\r\n\r\n"]) {
    expect(() => unchunked(wrong)).toThrow("a chunk");
  }
});

test("text that nobody sent is not timed", async () => {
  const reply = await serving([chunked]).ask({ ...request, mark: "tag-2" });
  expect(reply.marked_ms).toBeNull();
});
