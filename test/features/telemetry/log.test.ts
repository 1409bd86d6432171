/**
 * The log stays readable: it is filtered by level, leaves out probes, and limits repeated errors. Its line for a
 * request identifies the caller, and never contains the request's content or a key.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Call } from "../../../src/core/http/call.ts";
import { callersWords } from "../../../src/core/http/call-notes.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { ConnectFailed } from "../../../src/core/upstream/http1/dial.ts";
import { type LogLevel, logTo } from "../../../src/features/telemetry/log.ts";
import { lineOf } from "../../../src/features/telemetry/log-line.ts";
import { VirtualClock } from "../../core/admission/virtual-time.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

function logAt(level: LogLevel, hidden: string[] = []) {
  const clock = new VirtualClock();
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const log = logTo({
    write,
    clock,
    settings: () => ({ level, format: "json" }),
    probes: new Set(["/readyz"]),
    hidden: () => hidden,
  });
  const lines = () =>
    text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ask = (route: string, status: number, cause?: unknown) => {
    const call = new Call("req_1", new Request(`http://a${route}`), route, {
      address: () => "",
      isLocal: () => true,
      keepOpen() {},
    });
    if (cause) call.failed(new Fault("internal_error", "It failed.", { cause }));
    log.request(call, status);
  };
  return { clock, log, lines, ask };
}

test("an event that floods is written so often, and then how many were left out; others are not touched", async () => {
  const { clock, log, lines } = logAt("info");
  for (let second = 0; second < 10; second++) {
    for (let time = 0; time < 178; time++) log.event("warn", "ledger_unreachable", { time });
    log.event("warn", "recovered");
    await clock.advance(1000);
  }
  await clock.advance(200);
  const of = (event: string) => lines().filter((line) => line.event === event);
  expect(of("ledger_unreachable")).toHaveLength(21);
  expect(of("ledger_unreachable").at(-1)).toMatchObject({ level: "warn", left_out: 1780 - 20 });
  expect(of("recovered")).toHaveLength(10);
  // After the summary, the lines are counted from zero.
  log.event("warn", "ledger_unreachable");
  await clock.advance(20_000);
  expect(of("ledger_unreachable")).toHaveLength(22);
  expect(clock.timers).toBe(0);
});

test("the number of lines left out is written when the log ends", () => {
  const { log, lines } = logAt("info");
  for (let time = 0; time < 25; time++) log.event("warn", "recovered");
  log.flush();
  expect(lines()).toHaveLength(21);
  expect(lines().at(-1)).toMatchObject({ event: "recovered", left_out: 5 });
});

test.each([
  ["debug", ["/readyz 200", "/readyz 503", "/readyz 500", "/v1/models 200", "/v1/models 503", "info", "warn", "error"]],
  ["info", ["/readyz 500", "/v1/models 200", "/v1/models 503", "info", "warn", "error"]],
  ["warn", ["/readyz 500", "/v1/models 503", "warn", "error"]],
  ["error", ["/readyz 500", "/v1/models 503", "error"]],
] as const)("at level %s", (level, expected) => {
  const { log, lines, ask } = logAt(level);
  for (const status of [200, 503, 500]) ask("/readyz", status);
  for (const status of [200, 503]) ask("/v1/models", status);
  for (const of of ["info", "warn", "error"] as const) log.event(of, of);
  log.flush();
  const seen = lines().map(({ event, route, status }) => (event === "request" ? `${route} ${status}` : event));
  expect(seen).toEqual([...expected]);
});

test("a cause names no engine", () => {
  const { log, lines, ask } = logAt("info", [
    "http://gpu-7.internal:8000/v1",
    "gpu-7.internal:8000",
    "gpu-7.internal",
    "writer-awq",
  ]);
  const cause = new Error(
    "certificate of gpu-7.internal:8000 is not for gpu-7.internal (http://gpu-7.internal:8000/v1/chat, writer-awq)",
  );
  ask("/v1/models", 503, new Fault("upstream_unavailable", "x", { cause }));
  log.event("warn", "upstream_lost", { cause: String(cause) });
  log.flush();
  expect(lines()).toHaveLength(2);
  for (const line of lines()) {
    const told = String(line.cause);
    expect(told).toContain("certificate of <engine> is not for <engine> (<engine>/chat, <engine>)");
    expect(told).not.toMatch(/gpu-7|writer-awq/);
  }
});

test("the line of an engine that was not reached says why, as the runtime said it", () => {
  const { log, lines, ask } = logAt("info", ["gpu-7.internal"]);
  const cause = new ConnectFailed(new Error("getaddrinfo ENOTFOUND gpu-7.internal"));
  ask("/v1/models", 503, new Fault("upstream_unavailable", "x", { cause }));
  log.flush();
  expect(String(lines()[0]?.cause)).toStartWith(
    "ConnectFailed: the engine could not be reached (because: getaddrinfo ENOTFOUND <engine>)\n",
  );
});

const printable = /^[\x20-\x7e]*$/;

test("whatever callers send, it is short, on one line, and has no key", () => {
  const secrets = ["slk_", "slo_", "slt_", "slr_"].map((prefix) => `${prefix}0123456789abcdefghijkl`);
  const words = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...secrets), fc.constant("x".repeat(500)));
  fc.assert(
    fc.property(fc.array(words, { maxLength: 20 }), (parts) => {
      const headers = { get: () => parts.join("") };
      const { user_agent = "", x_request_id = "", x_client_request_id = "" } = callersWords(headers);
      expect(user_agent.length).toBeLessThanOrEqual(200);
      for (const id of [x_request_id, x_client_request_id]) expect(id.length).toBeLessThanOrEqual(128);
      for (const text of [user_agent, x_request_id]) {
        expect(text).toMatch(printable);
        expect(text).not.toMatch(/sl[kort]_0123/);
      }
      const line = lineOf("logfmt", { event: "request", user_agent, x_request_id });
      expect(line).toMatch(/^event=request user_agent=\S.*\n$/);
    }),
  );
  expect(callersWords({ get: () => null })).toEqual({});
});

test("logfmt quotes what a reader would take for something else, and says the same", () => {
  const cause = 'a "b" c=d\nsecond \\ line';
  expect(lineOf("logfmt", { a: 1, b: "plain/path", none: undefined, cause, nested: { x: [1] }, empty: "" })).toBe(
    `a=1 b=plain/path cause=${JSON.stringify(cause)} nested="{\\"x\\":[1]}" empty=""\n`,
  );
});

test.each(["json", "logfmt"])(
  "as %s: who called, and none of what was said",
  async (format) => {
    const service = await startSluice({
      config: `log: { format: ${format} }\n`,
      env: { SLUICE_TRUSTED_PROXIES: "127.0.0.1" },
    });
    try {
      for (const stream of [false, true]) {
        const response = await ask(service, stream);
        expect(await response.text()).toContain("walnut");
      }
      await until(() => (service.stderr().match(/chat\/completions/g) ?? []).length === 2, 5_000, "two lines");
      const lines = service
        .stderr()
        .split("\n")
        .filter((line) => line.includes("/v1/chat/completions"));
      for (const line of lines) {
        if (format === "json") {
          expect(JSON.parse(line)).toMatchObject({
            ...{ client: "203.0.113.7", user_agent: "agent/1.0 (test)" },
            ...{ x_request_id: "theirs-1", x_client_request_id: "<key>" },
          });
        } else {
          const words =
            'client=203.0.113.7 user_agent="agent/1.0 (test)" x_request_id=theirs-1 x_client_request_id=<key>';
          expect(line).toContain(` ${words} `);
          expect(line).toMatch(/^time=\S+ level=info event=request request_id=req_\S+ method=POST /);
        }
        expect(line).not.toContain("walnut");
      }
      expect(service.stderr()).not.toContain("walnut");
    } finally {
      await service.stop();
    }
  },
  60_000,
);

function ask(service: Sluice, stream: boolean) {
  return service.post(
    "/v1/chat/completions",
    {
      model: "openai/gpt-oss-120b",
      user: "walnut",
      stream,
      messages: [{ role: "user", content: "walnut [simulator: echo]" }],
    },
    {
      headers: {
        "user-agent": "agent/1.0 (test)",
        "x-forwarded-for": "203.0.113.7",
        "x-request-id": "theirs-1",
        "x-client-request-id": service.key,
      },
    },
  );
}
