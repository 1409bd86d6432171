// Whatever is thrown around a request, it is answered once and closed: docs/design/errors-and-streams.md, Errors.
import { expect, test } from "bun:test";
import { frame, lifecycle } from "../../../src/core/http/frame.ts";
import type { StreamOwner } from "../../../src/core/http/stream.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import { faultBodyOf } from "../../../src/core/operations/fault-body.ts";
import { plentifulBounds } from "../../harness/bounds.ts";

const connection = { address: () => "192.0.2.1", isLocal: () => false, keepOpen() {} };

/** The dependencies of the frame; `seen` gets the statuses that are logged and those that are counted in metrics. */
function needing(seen: { logged: number[]; counted: number[] }, isRead = true): Dependencies {
  const needed: Partial<Dependencies> = {
    newId: () => "0".repeat(32),
    bounds: plentifulBounds(),
    lifecycle: lifecycle(),
    unread: { discard: async () => isRead },
    metrics: { request: ({ status }: { status: number }) => void seen.counted.push(status) } as never,
    log: { request: (_, status) => void seen.logged.push(status), event() {}, flush() {} },
    shedsConnection: () => false,
  };
  return needed as Dependencies;
}
const refuses = () => {
  throw new Fault("model_not_found", "There is no such model.");
};
const noneSeen = (): { logged: number[]; counted: number[] } => ({ logged: [], counted: [] });
type Framed = Omit<Parameters<typeof frame>[1], "path" | "faultBody">;
/** The frame's answer to a request at /v1/models. */
const answerOf = (framed: Framed, needed = needing(noneSeen()), init: RequestInit = {}) =>
  frame(needed, { path: "/v1/models", faultBody: faultBodyOf(), ...framed })(
    new Request("http://localhost/v1/models", init),
    connection,
  );

test("a defect in the record of a refusal is a 500, and the request is closed", async () => {
  const seen = noneSeen();
  const failed = () => {
    throw new Error("the counter is broken");
  };
  const response = await answerOf({ work: refuses, failed }, needing(seen));
  expect(response.status).toBe(500);
  expect(seen.logged).toEqual([500]);
});

test.each([
  [true, null],
  [false, "close"],
])("a refused request, its body read: %p, says of its connection: %p", async (isRead, connectionHeader) => {
  const response = await answerOf({ work: refuses }, needing(noneSeen(), isRead), { method: "POST", body: "{}" });
  expect(response.headers.get("connection")).toBe(connectionHeader);
});

test.each([
  ["rate_limit_exceeded", 60, "60", null],
  ["rate_limit_exceeded", 60.2, null, "false"],
  ["usage_limit_reached", 604_048, null, "false"],
  ["usage_limit_reached", 12.1, "13", null],
  ["upstream_unavailable", 120, "120", "false"],
  ["overloaded", 1, "1", null],
] as const)(
  "%s that %p s mend names the wait %p, and x-should-retry is %p",
  async (code, wait_s, wait, shouldRetry) => {
    const work = () => {
      throw new Fault(code, "Later.", { retryAfterSeconds: wait_s });
    };
    const { headers } = await answerOf({ work });
    expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([wait, shouldRetry]);
  },
);

test("a stream that its client left is counted as 499, whatever it began with", async () => {
  const seen = noneSeen();
  let owner = null as StreamOwner | null;
  const open = (given: StreamOwner) => {
    owner = given;
    return new Response("begun");
  };
  expect((await answerOf({ work: () => ({ open }) }, needing(seen))).status).toBe(200);
  owner!.left();
  owner!.closed();
  while (seen.counted.length === 0) await Bun.sleep(1);
  expect(seen.counted).toEqual([499]);
});
