/** Malformed request lines and headers, as sent on a socket. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { freePort } from "../harness/daemon.ts";
import { model, type Service, says, startService } from "../harness/engine.ts";
import { until } from "../harness/until.ts";

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

/** Sends the text. Returns all bytes that the node sends until it closes the connection, or until they match `done`. */
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
    const asked = { "/livez": 200, "/readyz": 200, "/readyz?verbose": 200, "/": 200 };
    const refused = { "/v1/models": 401, "/v1/nothing": 404, "/metrics": 404 };
    for (const [path, status] of Object.entries({ ...asked, ...refused }))
      expect([path, statusOf(await raw(`GET ${path} HTTP/1.0\r\n\r\n`))]).toEqual([path, status]);
    expect(await raw(`GET /v1/models HTTP/1.0\r\n${key}\r\n\r\n`)).toContain('"object":"list"');
    expect(statusOf(await raw("HEAD /readyz HTTP/1.0\r\n\r\n", /\r\n\r\n$/))).toBe(200);
    const body = '{"model":"x"}';
    const post = `POST /v1/chat/completions HTTP/1.0\r\n${key}\r\ncontent-type: application/json\r\n`;
    expect(statusOf(await raw(`${post}content-length: ${body.length}\r\n\r\n${body}`))).toBe(400);
  });
});

describe("/metrics on a port of its own", () => {
  const tricks = (
    "/metrics /x/../metrics /x/%2e%2e/metrics /%2e/metrics /./metrics //metrics /x\\..\\metrics /abcdefgh/metrics " +
    "/v1/../metrics /metrics/ /metrics?x /metrics#x /%6detrics /METRICS http://other/metrics /livez/../metrics"
  ).split(" ");
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

test("a head that the runtime refuses gets its status, no id and no body, as the contract says", async () => {
  const fields = (count: number) => Array.from({ length: count }, (_, at) => `x${at}: 1\r\n`).join("");
  const heads: [number, string][] = [
    [200, `GET /livez HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(16_000)}\r\nconnection: close\r\n\r\n`],
    [431, `GET /livez HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(16_500)}\r\nconnection: close\r\n\r\n`],
    [200, `GET /livez HTTP/1.1\r\nhost: a\r\n${fields(196)}connection: close\r\n\r\n`],
    [431, `GET /livez HTTP/1.1\r\nhost: a\r\n${fields(197)}connection: close\r\n\r\n`],
    [400, "GET /livez HTTP/1.1\r\nno field\r\n\r\n"],
  ];
  for (const [status, head] of heads) {
    const answer = await raw(head);
    expect(statusOf(answer)).toBe(status);
    expect(answer.toLowerCase().includes("request-id")).toBe(status === 200);
    if (status !== 200) expect(answer).toEndWith("\r\n\r\n");
  }
});

test("every answer says that its type is its type, whoever gives it", async () => {
  const paths = ["/", "/livez", "/docs", "/openapi.json", "/docs/api-reference.js", "/nothing", "/v1/models"];
  for (const path of paths) {
    for (const key of [undefined, null]) {
      const response = await service.fetch(path, key === null ? { key } : {});
      expect([path, response.headers.get("x-content-type-options")]).toEqual([path, "nosniff"]);
    }
  }
  const chat = { model, messages: says(""), stream: true };
  for (const body of [chat, { ...chat, stream: false }, "{"]) {
    const response = await service.post("/v1/chat/completions", body);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    await response.text();
  }
});

describe("a head that two parsers may read differently", () => {
  const chat = () => JSON.stringify({ model, messages: says("") });
  const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const post = (fields: string, body: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer ${service.key}\r\ncontent-type: application/json\r\n${fields}\r\n\r\n${body}`;
  const closed = /(?!)/;

  for (const [name, fields] of [
    ["two hosts", "host: a\r\nhost: b\r\ntransfer-encoding: chunked"],
    ["the same host twice", "host: a\r\nhost: a\r\ntransfer-encoding: chunked"],
    ["a coding and a comma", "host: a\r\ntransfer-encoding: chunked,"],
    ["a comma and a coding", "host: a\r\ntransfer-encoding: , chunked"],
    ["two codings", "host: a\r\ntransfer-encoding: gzip, chunked"],
    ["a coding twice", "host: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked"],
    ["an unknown coding", "host: a\r\ntransfer-encoding: identity"],
    ["no coding", "host: a\r\ntransfer-encoding: "],
    ["a length and a coding", "host: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked"],
    ["two lengths", "host: a\r\ncontent-length: 3\r\ncontent-length: 4"],
    ["no host", "transfer-encoding: chunked"],
  ]) {
    test(`${name}: 400, the connection closed, and nothing is asked of an engine`, async () => {
      const asked = service.engine.counts.requests;
      const smuggled = "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n";
      const answer = await raw(post(fields!, chunked(chat()) + smuggled), closed);
      expect(statusOf(answer)).toBe(400);
      expect(answer.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
      expect(service.engine.counts.requests).toBe(asked);
    });
  }

  test("a coding in capitals is one", async () => {
    const fields = "host: a\r\nconnection: close\r\ntransfer-encoding: Chunked";
    expect(statusOf(await raw(post(fields, chunked(chat())), closed))).toBe(200);
  });
});

// The behaviour of the runtime's parser (docs/design/runtime.md, Bun as a server). Whenever it fails a request, the
// ledger has no open hold afterwards.
describe("where Bun's parser decides", () => {
  const head = (fields: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${service.key}\r\ncontent-type: application/json\r\n${fields}\r\n\r\n`;
  const holds = async () => Number(/^usage_holds (\d+)$/m.exec(await metrics())?.[1]);
  const metrics = () => fetch(`http://127.0.0.1:${operatorPort}/metrics`).then((response) => response.text());
  const idIn = (answer: string) => /x-service-request-id: (req_\w+)/i.exec(answer)?.[1] ?? "";
  interface Receipt {
    outcome: string;
    nanos: { charged: number };
    usage: { output_tokens: number };
  }
  const receiptOf = async (id: string) => (await (await service.fetch(`/v1/service/requests/${id}`)).json()) as Receipt;

  test("trailers: the request is answered, then a stray 400 ends the connection; it is charged once", async () => {
    const body = JSON.stringify({ model, messages: says("", "hello there") });
    const sent = `${head("transfer-encoding: chunked")}${body.length.toString(16)}\r\n${body}\r\n0\r\nx-checksum: 1\r\n\r\n`;
    const answer = await raw(sent, /(?!)/);
    const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);
    expect(statuses.at(-1)).toBe("400");
    await until(async () => (await holds()) === 0, 10_000, "nothing to be held");
    if (statuses.length > 1) expect((await receiptOf(idIn(answer))).outcome).toMatch(/completed|cancelled/);
  });

  test("a request behind a pending one: both end with the connection, and nothing stays held or is charged beyond what was made", async () => {
    const [asked, from] = [service.engine.counts.requests, service.stderr().length];
    const pending = JSON.stringify({ model, messages: says("ttft=1500", "hello there") });
    const socket = connect(Number(service.url.split(":").at(-1)), "127.0.0.1");
    let got = "";
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.on("error", () => {});
    socket.on("data", (data) => {
      got += data;
    });
    socket.write(`${head(`content-length: ${pending.length}`)}${pending}`);
    await until(() => service.engine.counts.requests > asked, 10_000, "the engine to be asked");
    socket.write("GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n");
    await Promise.race([closed, until(() => (got.match(/^HTTP/gm)?.length ?? 0) >= 2, 20_000, "both answers")]);
    socket.destroy();
    await until(async () => (await holds()) === 0, 10_000, "nothing to be held");
    let id = "";
    const logged = () => {
      id = /"request_id":"(req_\w+)"[^\n]*"status":499/.exec(service.stderr().slice(from))?.[1] ?? "";
      return id !== "";
    };
    await until(logged, 10_000, "the log to name the request");
    const receipt = await receiptOf(id);
    // The runtime closes the connection without a response, so the service sees a client that left.
    expect([got, receipt.outcome, receipt.usage.output_tokens]).toEqual(["", "cancelled", 0]);
  });
});
