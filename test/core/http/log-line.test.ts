/** What a log line says about a request's caller: enough to find the request by, and never content or a key. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { callersWords, lineOf } from "../../../src/core/http/log-line.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

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
