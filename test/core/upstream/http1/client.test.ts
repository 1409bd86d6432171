/**
 * Connections to engines over real sockets: which of them are opened, kept, reused and closed, and what a failure
 * reports.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Cancellation } from "../../../../src/core/time/cancellation.ts";
import { type Client, client, type Post, type Where } from "../../../../src/core/upstream/http1/client.ts";
import { ConnectionLost } from "../../../../src/core/upstream/http1/connection.ts";
import { ConnectFailed } from "../../../../src/core/upstream/http1/dial.ts";
import type { Reply } from "../../../../src/core/upstream/http1/exchange.ts";
import { MalformedResponse } from "../../../../src/core/upstream/http1/head.ts";
import { Listened } from "../../../harness/listened.ts";
import { until } from "../../../harness/until.ts";
import { authority, certificate, clientPair, othersCertificate } from "./certificates.ts";
import { type Answer, listening, startEngine, textOf } from "./engines.ts";

const listen = listening();
const engine = (answer: Answer) => startEngine(listen, answer);

const ok: Answer = (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");

const clients: Client[] = [];
afterAll(() => {
  for (const one of clients) one.close();
});
function fresh(options: Parameters<typeof client>[0] = {}): Client {
  const made = client(options);
  clients.push(made);
  return made;
}

function post(to: Client, url: string, more: Partial<Post & Where> = {}): Promise<Reply> {
  const { address, tls = null, ...own } = more;
  const endpoint = to.at({}, () => ({ url, address, headers: { "x-a": "b" }, tls }));
  return endpoint.post({
    ...{ headers: {}, body: '{"ü":1}', connect_ms: 5_000, isFresh: false },
    connected() {},
    signal: new Cancellation(),
    ...own,
  });
}

const failureOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => null,
    (cause: unknown) => cause,
  );

test("a request arrives as it was given, and its answer as it was sent", async () => {
  let seen = "";
  const { url } = await engine((socket, request) => {
    seen = Buffer.from(request, "latin1").toString();
    socket.write("HTTP/1.1 418 Teapot\r\nX-Kind: Tea\r\ncontent-length: 2\r\n\r\nok");
  });
  const reply = await post(fresh(), url);
  expect([reply.status, reply.headers.get("x-kind"), await textOf(reply)]).toEqual([418, "Tea", "ok"]);
  expect(seen).toBe(
    `POST /v1/chat HTTP/1.1\r\nhost: ${new URL(url).host}\r\nx-a: b\r\ncontent-length: 8\r\n\r\n{"ü":1}`,
  );
});

test("a request of many megabytes goes out whole, however slowly it is read", async () => {
  let length = 0;
  const { url } = await engine((socket, request, nth) => {
    length = request.length;
    ok(socket, request, nth);
  });
  const body = "x".repeat(20_000_000);
  expect(await textOf(await post(fresh(), url, { body }))).toBe("ok");
  expect(length).toBeGreaterThan(body.length);
});

test("a request in pieces goes out whole and in order, and its pieces are used up", async () => {
  let seen = "";
  const { url } = await engine((socket, request, nth) => {
    seen = Buffer.from(request, "latin1").toString();
    ok(socket, request, nth);
  });
  const texts = Array.from({ length: 40 }, (_, at) => `${at}é`.repeat(100_000));
  const body = texts.map((text) => new TextEncoder().encode(text));
  const bytes = body.reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(await textOf(await post(fresh(), url, { body }))).toBe("ok");
  const [head, sent] = seen.split("\r\n\r\n");
  expect(head).toContain(`content-length: ${bytes}`);
  expect(sent === texts.join("")).toBe(true);
  expect(body).toEqual([]);
});

// A small first piece is sent in one write with the head.
test.each([1000, 20_000])(
  "pieces of one memory go out whole, and it is freed with the last: first %d",
  async (first) => {
    let seen = "";
    const { url } = await engine((socket, request, nth) => {
      seen = request;
      ok(socket, request, nth);
    });
    const memory = new Uint8Array(4_000_000).fill(0x61);
    const own = new TextEncoder().encode("b".repeat(1000));
    const body = [memory.subarray(0, first), own, memory.subarray(3_000_000)];
    const patience = Cancellation.timeout(10_000);
    expect(await textOf(await post(fresh(), url, { body, signal: patience }))).toBe("ok");
    expect(seen.split("\r\n\r\n")[1] === "a".repeat(first) + "b".repeat(1000) + "a".repeat(1_000_000)).toBe(true);
    expect([memory.byteLength, own.byteLength]).toEqual([0, 0]);
  },
);

describe("a connection", () => {
  test("whose answer was read serves the next request, and one of its own is a new one", async () => {
    const { url, requests } = await engine(ok);
    const one = fresh();
    for (let count = 0; count < 3; count++) await textOf(await post(one, url));
    await textOf(await post(one, url, { isFresh: true }));
    expect(requests).toEqual([0, 0, 0, 1]);
  });

  test("is not taken by a request that has ended before it could be sent", async () => {
    const { url, requests, open } = await engine(ok);
    const one = fresh();
    await textOf(await post(one, url));
    await until(() => one.idle() === 1, 5_000, "the connection to be idle");
    const signal = new Cancellation();
    signal.abort(new Error("the client left"));
    expect(await failureOf(post(one, url, { signal }))).toEqual(new Error("the client left"));
    expect(one.idle()).toBe(1);
    await textOf(await post(one, url));
    expect(requests).toEqual([0, 0]);
    one.close();
    await until(() => open() === 0, 5_000, "the connection to be closed with the client");
  });

  for (const [what, field] of [
    ["that the engine wants closed", "connection: close\r\n"],
    ["that the engine keeps for a second", "keep-alive: timeout=1\r\n"],
  ]) {
    test(`${what} serves none`, async () => {
      const { url, requests } = await engine((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${field}content-length: 2\r\n\r\nok`);
      });
      const one = fresh();
      for (let count = 0; count < 3; count++) await textOf(await post(one, url));
      expect(requests).toEqual([0, 1, 2]);
      expect(one.idle()).toBe(0);
    });
  }

  test("that says more than its answer serves none", async () => {
    const { url, requests } = await engine((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad");
    });
    const one = fresh();
    const texts: string[] = [];
    for (let count = 0; count < 3; count++) {
      const reply = await post(one, url).catch(() => null);
      if (reply) texts.push(await textOf(reply).catch(() => "failed"));
    }
    expect(texts).not.toContain("bad");
    expect(requests).toEqual([0, 1, 2]);
  });

  test("whose answer came before the engine had read the whole request serves none: the rest would be read as the next", async () => {
    const requests: number[] = [];
    let connections = 0;
    const server = createServer((socket) => {
      const number = connections++;
      socket.once("data", () => {
        requests.push(number);
        socket.pause();
        ok(socket, "", 0);
      });
    });
    const url = await listen(server);
    const one = fresh();
    const large = "x".repeat(32_000_000);
    for (let count = 0; count < 2; count++) expect(await textOf(await post(one, url, { body: large }))).toBe("ok");
    expect(requests).toEqual([0, 1]);
    expect(one.idle()).toBe(0);
  });

  test("that the engine has closed while it lay idle is not used", async () => {
    const { url, requests } = await engine((socket, request, nth) => {
      ok(socket, request, nth);
      socket.end();
    });
    const one = fresh();
    await textOf(await post(one, url));
    await until(() => one.idle() === 0, 5_000, "the closing to be seen");
    await textOf(await post(one, url));
    expect(requests).toEqual([0, 1]);
  });

  test("that has lain idle for its time is closed", async () => {
    const { url, open } = await engine(ok);
    const one = fresh({ idle_ms: 50 });
    await textOf(await post(one, url));
    await until(() => open() === 0, 5_000, "the idle connection to be closed");
    expect(one.idle()).toBe(0);
  });

  for (const inFlight of [256, 1000]) {
    test(`is kept for each of ${inFlight} requests in flight`, async () => {
      const waiting: (() => void)[] = [];
      const { url, connections, requests } = await engine((...answer) => {
        waiting.push(() => ok(...answer));
        if (waiting.length === inFlight) for (const write of waiting.splice(0)) write();
      });
      const one = fresh();
      for (let round = 0; round < 3; round++) {
        await Promise.all(Array.from({ length: inFlight }, async () => textOf(await post(one, url))));
      }
      expect(requests.length).toBe(3 * inFlight);
      expect(connections.length).toBe(inFlight);
    }, 60_000);
  }
});

describe("a failure tells how far the request came:", () => {
  test("nobody listens", async () => {
    const { url, stop } = await engine(ok);
    await stop();
    expect(await failureOf(post(fresh(), url))).toBeInstanceOf(ConnectFailed);
  });

  test("a name that does not exist", async () => {
    expect(await failureOf(post(fresh(), "http://engine.invalid/v1"))).toBeInstanceOf(ConnectFailed);
  });

  test("the connection takes too long, and nothing of the answer is waited for", async () => {
    // An https URL of an engine that never answers the TLS handshake.
    const url = await listen(createServer(), "https");
    let isConnected = false;
    const connected = () => {
      isConnected = true;
    };
    const failure = await failureOf(post(fresh(), url, { connect_ms: 100, connected }));
    expect(failure).toMatchObject({ name: "ConnectFailed", isTimeout: true });
    expect(isConnected).toBe(false);
  });

  for (const how of ["reset", "closed"] as const) {
    const close = (socket: Socket) => void (how === "reset" ? socket.resetAndDestroy() : socket.end());

    test(`${how} on a new connection, before any byte: the engine may have read it all`, async () => {
      const { url, requests } = await engine(close);
      const failure = await failureOf(post(fresh(), url));
      expect(failure).toBeInstanceOf(how === "reset" ? ConnectionLost : Error);
      expect((failure as ConnectionLost).isStale).toBe(false);
      expect(requests).toEqual([0]);
    });

    test(`${how} on one that had served, before any byte: stale, and not sent again by itself`, async () => {
      const { url, requests } = await engine((socket, request, nth) =>
        nth === 0 ? ok(socket, request, nth) : close(socket),
      );
      const one = fresh();
      await textOf(await post(one, url));
      expect(await failureOf(post(one, url))).toMatchObject({ name: "ConnectionLost", isStale: true });
      expect(requests).toEqual([0, 0]);
    });

    test(`${how} on one that had served, behind the first byte: not stale`, async () => {
      const { url } = await engine((socket, request, nth) => {
        if (nth === 0) return ok(socket, request, nth);
        socket.write("HTTP/1.1 2", () => close(socket));
      });
      const one = fresh();
      await textOf(await post(one, url));
      expect(await failureOf(post(one, url))).toMatchObject({ name: "ConnectionLost", isStale: false });
    });

    test(`${how} in the middle of the body`, async () => {
      const { url } = await engine((socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe", () => close(socket));
      });
      const failure = await failureOf(post(fresh(), url).then(textOf));
      expect(failure).toMatchObject({ name: "ConnectionLost", isStale: false });
    });
  }

  test("what came is no HTTP", async () => {
    const { url } = await engine((socket) => void socket.write("SSH-2.0-OpenSSH\r\n"));
    expect(await failureOf(post(fresh(), url))).toBeInstanceOf(MalformedResponse);
  });

  test("an answer without a length ends where the engine closes, and not where it breaks", async () => {
    const closing = (close: (socket: Socket) => void) =>
      engine((socket) => void socket.write("HTTP/1.1 200 OK\r\n\r\nhello", () => setTimeout(close, 50, socket)));
    const whole = await closing((socket) => socket.end());
    expect(await textOf(await post(fresh(), whole.url))).toBe("hello");
    const broken = await closing((socket) => socket.resetAndDestroy());
    expect(await failureOf(post(fresh(), broken.url).then(textOf))).toBeInstanceOf(ConnectionLost);
  });
});

describe("an abort", () => {
  for (const [when, text] of [
    ["before any byte", ""],
    ["in the middle of an answer", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"],
  ] as const) {
    test(`${when} frees the socket, and its reason is what is thrown`, async () => {
      const { url, open, requests } = await engine((socket) => void socket.write(text));
      const abort = new Cancellation();
      const failing = failureOf(post(fresh(), url, { signal: abort }).then(textOf));
      await until(() => requests.length === 1, 5_000, "the request to arrive");
      const reason = new Error("the caller left");
      abort.abort(reason);
      expect(await failing).toBe(reason);
      await until(() => open() === 0, 5_000, "the socket to be freed");
    });
  }

  test("is listened for no longer than to the end of the answer, or of the connection", async () => {
    const signal = new Listened();
    const one = fresh();
    const whole = await engine(ok);
    for (let asked = 0; asked < 3; asked++) await textOf(await post(one, whole.url, { signal }));
    const broken = await engine((socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"));
    await failureOf(post(one, broken.url, { signal }).then(textOf));
    const unread = await engine((socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"));
    (await post(one, unread.url, { signal })).drop();
    await failureOf(post(one, "http://127.0.0.1:1/v1", { signal }));
    expect(signal.listeners).toBe(0);
  });

  test("after an answer's end changes nothing: the connection serves on", async () => {
    const { url, requests } = await engine(ok);
    const one = fresh();
    const abort = new Cancellation();
    await textOf(await post(one, url, { signal: abort }));
    abort.abort("late");
    await textOf(await post(one, url));
    expect(requests).toEqual([0, 0]);
  });
});

test("an engine that writes faster than its answer is read is held back", async () => {
  let sent = 0;
  const piece = Buffer.alloc(64 * 1024, 0x61);
  const { url } = await engine((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const pour = () => {
      while (!socket.destroyed && sent < 400_000_000 && socket.write(piece)) sent += piece.length;
      if (!socket.destroyed && sent < 400_000_000) socket.once("drain", pour);
    };
    pour();
  });
  const reply = await post(fresh(), url);
  let before = -1;
  const isHeld = () => {
    const same = sent === before;
    before = sent;
    return same;
  };
  await until(isHeld, 20_000, "the engine to be held back");
  // Most of the answer is still on the engine's side of the connection.
  expect(sent).toBeLessThan(10_000_000);
  let read = 0;
  while (read < 60_000_000) for (const part of (await reply.read()) ?? []) read += part.length;
  reply.drop();
});

describe("an engine at one of its name's addresses", () => {
  const at = async (hostname: string, port = 0) => {
    const asked: (string | null)[] = [];
    const server = Bun.serve({
      ...{ hostname, port },
      fetch({ headers }) {
        asked.push(headers.get("host"));
        return new Response("ok");
      },
    });
    return { port: server.port!, asked, stop: () => server.stop(true) };
  };

  test("is asked there, on connections of its own, and under its name", async () => {
    const one = await at("127.0.0.1");
    const [other, third] = [await at("127.0.0.2", one.port), await at("::1", one.port).catch(() => null)];
    const addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.2", ...(third ? ["::1"] : [])];
    const url = `http://engines.localhost:${one.port}/v1`;
    const sender = fresh();
    for (const address of addresses) expect(await textOf(await post(sender, url, { address }))).toBe("ok");
    await until(() => sender.idle() === new Set(addresses).size, 5_000, "a connection to each");
    const host = `engines.localhost:${one.port}`;
    expect([one.asked, other.asked, third?.asked ?? [host]]).toEqual([[host], [host, host], [host]]);
    await Promise.all([one.stop(), other.stop(), third?.stop()]);
  });

  test("is not asked at an address of this machine that its name does not say, nor where none is known", async () => {
    const one = await at("127.0.0.1");
    const url = `http://engines.test:${one.port}/v1`;
    for (const address of ["127.0.0.1", "::1", "169.254.169.254", null]) {
      const failure = await failureOf(post(fresh(), url, { address }));
      expect(failure).toBeInstanceOf(ConnectFailed);
      expect((failure as ConnectFailed).isTimeout).toBe(false);
    }
    expect(one.asked).toEqual([]);
    await one.stop();
  });

  test("speaks TLS under its name, and shows a certificate for that", async () => {
    const names: string[] = [];
    const secure = createTlsServer(
      {
        ...certificate,
        SNICallback(name, done) {
          names.push(name);
          done(null);
        },
      },
      (socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    );
    await new Promise<void>((ready) => secure.listen(0, "127.0.0.2", ready));
    const { port } = secure.address() as AddressInfo;
    const tls = { ca: authority, certificate: null };
    const asked = (host: string) => post(fresh(), `https://${host}:${port}/v1`, { address: "127.0.0.2", tls });
    expect(await textOf(await asked("localhost"))).toBe("ok");
    expect(names).toEqual(["localhost"]);
    const failure = (await failureOf(asked("engines.localhost"))) as ConnectFailed;
    expect(String(failure.cause)).toContain("altnames");
    secure.close();
  });

  test("is forgotten some time after its last connection, and known again by one that was busy meanwhile", async () => {
    const answer = Promise.withResolvers<void>();
    const server = Bun.serve({
      ...{ hostname: "127.0.0.1", port: 0 },
      async fetch() {
        await answer.promise;
        return new Response("ok");
      },
    });
    const sender = fresh({ idle_ms: 300 });
    const asked = (address: string) => post(sender, `http://engines.localhost:${server.port}/v1`, { address });
    for (let last = 1; last <= 40; last++) await failureOf(asked(`127.0.1.${last}`));
    const reply = asked("127.0.0.1");
    expect(sender.origins()).toBeGreaterThan(0);
    await until(() => sender.origins() === 0, 10_000, "all to be forgotten");
    answer.resolve();
    expect(await textOf(await reply)).toBe("ok");
    await until(() => sender.idle() === 1, 10_000, "its connection to be known");
    await until(() => sender.idle() === 0 && sender.origins() === 0, 10_000, "it to be closed");
    const kept = sender.at({}, () => ({ url: `http://localhost:${server.port}/v1`, headers: {}, tls: null }));
    await until(() => sender.origins() === 0, 10_000, "what nobody has used yet to be forgotten");
    const more = {
      headers: {},
      body: "",
      connect_ms: 5_000,
      isFresh: false,
      connected() {},
      signal: new Cancellation(),
    };
    for (let asked = 0; asked < 2; asked++) expect(await textOf(await kept.post(more))).toBe("ok");
    expect([sender.idle(), sender.origins()]).toEqual([1, 1]);
    await server.stop(true);
  });
});

describe("https", () => {
  const tls = { ca: authority, certificate: null };
  const serve = (options: object = {}) => {
    const server = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1", tls: { ...certificate, ...options } },
      fetch: async (request) => new Response(await request.text()),
    });
    return { url: `https://localhost:${server.port}/v1`, stop: () => server.stop(true) };
  };

  test("is spoken to an engine whose authority is trusted, and to no other", async () => {
    const { url, stop } = serve();
    expect(await textOf(await post(fresh(), url, { tls, body: "hello" }))).toBe("hello");
    expect(await failureOf(post(fresh(), url))).toBeInstanceOf(ConnectFailed);
    await stop();
  });

  test("is not spoken to an engine of another name", async () => {
    const { url, stop } = serve(othersCertificate);
    const failure = (await failureOf(post(fresh(), url, { tls }))) as ConnectFailed;
    expect(failure).toBeInstanceOf(ConnectFailed);
    expect(String(failure.cause)).toContain("altnames");
    await stop();
  });

  test("shows a certificate of ours to an engine that asks for one", async () => {
    const { url, stop } = serve({ ca: authority, requestCert: true, rejectUnauthorized: true });
    const answered = post(fresh(), url, { tls: { ca: authority, certificate: clientPair }, body: "hello" }).then(
      textOf,
    );
    expect(await answered).toBe("hello");
    expect(await failureOf(post(fresh(), url, { tls }).then(textOf))).toBeInstanceOf(Error);
    await stop();
  });

  test("connections are shared by those alone who trust the same and are the same", async () => {
    const { url, stop } = serve();
    const one = fresh();
    await textOf(await post(one, url, { tls }));
    expect(await failureOf(post(one, url))).toBeInstanceOf(ConnectFailed);
    await stop();
  });
});
