/**
 * Unrequested answers, over real sockets: HTTP/1.1 cannot prove to which request an answer belongs, so bytes that
 * follow one answer must not become the next.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { Cancellation } from "../../../../src/core/time/cancellation.ts";
import {
  type Client,
  type ClientSettings,
  client,
  type Reuse,
  type Stray,
} from "../../../../src/core/upstream/http1/client.ts";
import { until } from "../../../harness/until.ts";
import { listening, startEngine, textOf } from "./engines.ts";

const chunked = (text: string) =>
  `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

const ending: (() => void)[] = [];
afterAll(() => {
  for (const end of ending) end();
});
const listen = listening();

/**
 * Starts an engine. `answer` gets the value of the request's `x-asked` header. `nth` counts the requests of the
 * connection, from 0.
 */
async function engine(answer: (socket: Socket, asked: string, nth: number) => void) {
  const heads: string[] = [];
  const started = await startEngine(listen, (socket, request, nth) => {
    heads.push(request);
    answer(socket, /x-asked: (\S+)/.exec(request)![1]!, nth);
  });
  return { ...started, heads };
}

function asking({ url }: { url: string }, reuse: Reuse, settings: ClientSettings = {}) {
  const strays: Stray[] = [];
  const made: Client = client({ strayed: (stray) => void strays.push(stray), ...settings });
  ending.push(() => made.close());
  const endpoint = made.at({}, () => ({ url, headers: {}, tls: null, reuse, upstream: "main" }));
  return {
    made,
    strays,
    /** Returns the answer's text. */
    async ask(asked: string, organization: string | null = null): Promise<string> {
      return textOf(
        await endpoint.post({
          headers: { "x-asked": asked },
          body: "{}",
          organization,
          isFresh: false,
          connect_ms: 5_000,
          connected() {},
          signal: new Cancellation(),
        }),
      );
    },
  };
}

const honest = (socket: Socket, asked: string) => void socket.write(chunked(asked));

/** Answers each request, and 1 to 2 ms later sends the same answer again. */
const twice = (socket: Socket, asked: string) => {
  socket.write(chunked(asked));
  setTimeout(() => void (socket.destroyed || socket.write(chunked(asked))), 1 + Math.random());
};

describe("an engine that sends each answer again 1 to 2 ms later, asked 2,000 times by 50 organizations at once", () => {
  const requests = 2_000;

  async function wrongAnswers(reuse: Reuse, settings?: ClientSettings) {
    const { url, connections } = await engine(twice);
    const { ask, strays } = asking({ url }, reuse, settings);
    const wrong = { ofOrganizations: 0, ofCallers: 0, failed: 0 };
    let begun = 0;
    const caller = async () => {
      for (let nth = begun++; nth < requests; nth = begun++) {
        const organization = `org-${nth % 50}`;
        const text = await ask(`${organization}/${nth}`, organization).catch(() => null);
        if (text === null) wrong.failed += 1;
        else if (!text.startsWith(`${organization}/`)) wrong.ofOrganizations += 1;
        else if (text !== `${organization}/${nth}`) wrong.ofCallers += 1;
        await new Promise((resolve) => setTimeout(resolve, 2 * Math.random()));
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    return { wrong, strays, connections };
  }

  test("shows no organization another one's answer, where connections are an organization's", async () => {
    // No stray answer crosses organizations, even if the organization's connections are reused at once.
    const { wrong } = await wrongAnswers("organization", { distrust_ms: 0, idle_ms: 20 });
    expect(wrong.ofOrganizations).toBe(0);
  }, 60_000);

  test("shows nobody another caller's answer, where connections are not reused", async () => {
    const { wrong, connections } = await wrongAnswers("none");
    expect(connections).toEqual(Array(requests).fill(1));
    expect(wrong).toEqual({ ofOrganizations: 0, ofCallers: 0, failed: 0 });
  }, 60_000);

  test("is found out where connections are anybody's, by the first stray byte that no request meets", async () => {
    const { wrong, strays } = await wrongAnswers("any");
    expect(strays[0]).toEqual({ upstream: "main", replica: null, isFirst: true });
    // Only the requests in flight until then can get a wrong answer: docs/security.md, Answers that nobody asked for.
    expect(wrong.ofOrganizations + wrong.ofCallers + wrong.failed).toBeLessThanOrEqual(requests / 100);
  }, 60_000);
});

describe("a stray answer", () => {
  test("that no request meets closes its connection, and none of the engine's is reused until an hour later", async () => {
    const sockets: Socket[] = [];
    const one = await engine((socket, asked) => {
      sockets.push(socket);
      honest(socket, asked);
    });
    const { ask, strays, made } = asking(one, "any", { distrust_ms: 300, idle_ms: 20_000 });
    await Promise.all(["a", "b"].map((asked) => ask(asked)));
    await until(() => made.idle() === 2);
    sockets[0]!.write(chunked("stray"));
    await until(() => made.idle() === 0);
    expect(strays).toEqual([{ upstream: "main", replica: null, isFirst: true }]);
    expect(await ask("c")).toBe("c");
    expect(await ask("d")).toBe("d");
    expect(one.connections).toEqual([1, 1, 1, 1]);
    expect(one.heads.slice(2).every((head) => head.includes("connection: close\r\n"))).toBe(true);
    await until(async () => {
      await ask("later");
      return one.connections.some((requests, number) => number > 1 && requests > 1);
    });
  });

  test("counts against the engine by whichever name and for whichever organization it is asked", async () => {
    const sockets: Socket[] = [];
    const one = await engine((socket, asked) => {
      sockets.push(socket);
      honest(socket, asked);
    });
    const { ask, made } = asking(one, "organization");
    const other = made.at({}, () => ({ url: one.url, headers: {}, tls: null, reuse: "any", upstream: "other" }));
    await ask("a", "org-a");
    await ask("b", "org-b");
    await until(() => made.idle() === 2);
    sockets[0]!.write("x");
    await until(() => made.idle() === 0);
    const signal = new Cancellation();
    for (let count = 0; count < 2; count++) {
      await ask("b", "org-b");
      const post = {
        headers: { "x-asked": "c" },
        body: "{}",
        connect_ms: 5_000,
        isFresh: false,
        connected() {},
        signal,
      };
      await (await other.post(post)).read();
    }
    expect(one.connections).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test("in one read with the answer to the first request leaves that answer as it is, and counts", async () => {
    const { ask, strays } = asking(
      await engine((socket, asked) => void socket.write(chunked(asked) + chunked("stray"))),
      "any",
    );
    expect([await ask("a"), await ask("b")]).toEqual(["a", "b"]);
    expect(strays.map(({ isFirst }) => isFirst)).toEqual([true, false]);
  });

  test("in one read with the answer to a later request fails it: nothing tells which of the two is its own", async () => {
    const one = await engine((socket, asked, nth) => {
      socket.write(nth === 0 ? chunked(asked) : chunked("stray") + chunked(asked));
    });
    const { ask, strays } = asking(one, "any");
    expect(await ask("a")).toBe("a");
    expect(await ask("b").catch((cause: Error) => cause.name)).toBe("MalformedResponse");
    expect(strays.length).toBe(1);
    expect(await ask("c")).toBe("c");
    expect(one.connections).toEqual([2, 1]);
  });

  test.if(process.platform === "linux")("that has arrived but was not read meets no request", async () => {
    const child = Bun.spawn([process.execPath, "-e", straying], { stdout: "pipe" });
    ending.push(() => child.kill());
    const reader = child.stdout.getReader();
    const port = Number(new TextDecoder().decode((await reader.read()).value));
    const { ask, strays, made } = asking({ url: `http://127.0.0.1:${port}/` }, "any");
    expect(await ask("a")).toBe("a");
    await until(() => made.idle() === 1);
    // The stray answer comes 20 ms later, while this process reads no socket.
    const until_ms = performance.now() + 100;
    while (performance.now() < until_ms);
    expect(await ask("b")).toBe("b");
    await until(() => strays.length === 1);
  });

  test("is none, if an engine says 408 before it closes an idle connection", async () => {
    const one = await engine((socket, asked, nth) => {
      honest(socket, asked);
      if (nth === 0) setTimeout(() => socket.end("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"), 20);
    });
    const { ask, strays, made } = asking(one, "any");
    expect(await ask("a")).toBe("a");
    await until(() => made.idle() === 0);
    expect(strays).toEqual([]);
  });
});

/**
 * An engine in a separate process: it sends the first answer of a connection again 20 ms later, and prints its port.
 */
const straying = `
  const answer = ${String(chunked)};
  const server = require("node:net").createServer((socket) => {
    let nth = 0;
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      const text = answer(/x-asked: (\\S+)/.exec(bytes.toString())[1]);
      socket.write(text);
      if (nth++ === 0) setTimeout(() => socket.write(text), 20);
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

describe("connections that are an organization's", () => {
  test("serve the organization again, and no other; without one, nobody", async () => {
    const one = await engine(honest);
    const { ask } = asking(one, "organization");
    for (const organization of ["org-a", "org-b", "org-a", "org-b", null, null])
      expect(await ask("x", organization)).toBe("x");
    expect(one.connections).toEqual([2, 2, 1, 1]);
  });

  test("are bounded in number over all of them, and the oldest is closed for one more", async () => {
    const one = await engine(honest);
    const { ask, made } = asking(one, "organization", { idle_max: 3 });
    for (let nth = 0; nth < 10; nth++) await ask("x", `org-${nth}`);
    expect(made.idle()).toBe(3);
    for (const nth of [9, 8, 7]) await ask("x", `org-${nth}`);
    expect(one.connections).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    await ask("x", "org-0");
    expect([one.connections.length, made.idle()]).toEqual([11, 3]);
  });
});
