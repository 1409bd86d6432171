/** What a peer may write into the first lines of a request, as bytes on a socket. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { freePort } from "../harness/daemon.ts";
import { type Service, startService } from "../harness/engine.ts";

setDefaultTimeout(60_000);

let service: Service;
let operatorPort: number;
beforeAll(async () => {
  operatorPort = await freePort();
  service = await startService({ sluice: { env: { SLUICE_OPERATOR_PORT: String(operatorPort) } } });
});
afterAll(async () => {
  await service.stop();
});

/** All that came back until the connection closed, or `done` was seen. */
function raw(
  text: string,
  done = /\r\n\r\n[\s\S]*\}\n?$/,
  port = Number(service.url.split(":").at(-1)),
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    const timer = setTimeout(() => socket.destroy(new Error("no answer")), 20_000);
    let got = "";
    socket.on("data", (data) => {
      got += data;
      if (done.test(got)) socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(got);
    });
  });
}
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);

describe("HTTP/1.0 without Host", () => {
  test("is answered like any request: haproxy's plain httpchk and its kin mark no node down", async () => {
    const key = `authorization: Bearer ${service.key}`;
    const asked: [string, number][] = [
      ["GET /livez", 200],
      ["GET /readyz", 200],
      ["GET /readyz?verbose", 200],
      ["GET /", 200],
      ["GET /v1/models", 401],
      ["GET /v1/nothing", 404],
      ["GET /metrics", 404],
    ];
    for (const [line, status] of asked) {
      expect([line, statusOf(await raw(`${line} HTTP/1.0\r\n\r\n`))]).toEqual([line, status]);
    }
    expect(await raw(`GET /v1/models HTTP/1.0\r\n${key}\r\n\r\n`)).toContain('"object":"list"');
    expect(statusOf(await raw("HEAD /readyz HTTP/1.0\r\n\r\n", /\r\n\r\n$/))).toBe(200);
    const body = '{"model":"x"}';
    const post = `POST /v1/chat/completions HTTP/1.0\r\n${key}\r\ncontent-type: application/json\r\n`;
    expect(statusOf(await raw(`${post}content-length: ${body.length}\r\n\r\n${body}`))).toBe(400);
  });
});

describe("/metrics on a port of its own", () => {
  const tricks = [
    "/metrics",
    "/x/../metrics",
    "/x/%2e%2e/metrics",
    "/%2e/metrics",
    "/./metrics",
    "//metrics",
    "/x\\..\\metrics",
    "/abcdefgh/metrics",
    "/v1/../metrics",
    "/metrics/",
    "/metrics?x",
    "/metrics#x",
    "/%6detrics",
    "/METRICS",
    "http://other/metrics",
    "/livez/../metrics",
  ];
  for (const [name, head] of [
    ["with a Host", "HTTP/1.1\r\nhost: a"],
    ["with a Host that is none", "HTTP/1.1\r\nhost: a b"],
    ["with a path for a Host", "HTTP/1.1\r\nhost: /metrics?"],
    ["without a Host", "HTTP/1.0\r\nx: y"],
  ] as const) {
    test(`is reached by no path, ${name}`, async () => {
      for (const path of tricks) {
        const answer = await raw(`GET ${path} ${head}\r\nconnection: close\r\n\r\n`);
        expect([path, [400, 404].includes(statusOf(answer))]).toEqual([path, true]);
        expect(answer).not.toContain("build_info");
      }
    });
  }

  test("answers there, with the probes, and nothing else", async () => {
    const there = (path: string) => raw(`GET ${path} HTTP/1.0\r\n\r\n`, /(?!)/, operatorPort);
    expect(await there("/metrics")).toContain("build_info");
    expect(statusOf(await there("/readyz"))).toBe(200);
    expect(statusOf(await there("/v1/models"))).toBe(404);
  });
});
