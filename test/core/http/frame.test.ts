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

test("a defect in the record of a refusal is a 500, and the request is closed", async () => {
  const seen = noneSeen();
  const serve = frame(needing(seen), {
    path: "/v1/models",
    faultBody: faultBodyOf(),
    failed: () => {
      throw new Error("the counter is broken");
    },
    work: refuses,
  });
  const response = await serve(new Request("http://localhost/v1/models"), connection);
  expect(response.status).toBe(500);
  expect(seen.logged).toEqual([500]);
});

test.each([
  [true, null],
  [false, "close"],
])("a refused request, its body read: %p, says of its connection: %p", async (isRead, connectionHeader) => {
  const serve = frame(needing(noneSeen(), isRead), {
    path: "/v1/models",
    faultBody: faultBodyOf(),
    work: refuses,
  });
  const response = await serve(new Request("http://localhost/v1/models", { method: "POST", body: "{}" }), connection);
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
    const serve = frame(needing(noneSeen()), {
      path: "/v1/models",
      faultBody: faultBodyOf(),
      work: () => {
        throw new Fault(code, "Later.", { retryAfterSeconds: wait_s });
      },
    });
    const { headers } = await serve(new Request("http://localhost/v1/models"), connection);
    expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([wait, shouldRetry]);
  },
);

test("a stream that its client left is counted as 499, whatever it began with", async () => {
  const seen = noneSeen();
  let owner = null as StreamOwner | null;
  const serve = frame(needing(seen), {
    path: "/v1/models",
    faultBody: faultBodyOf(),
    work: () => ({
      open(given) {
        owner = given;
        return new Response("begun");
      },
    }),
  });
  expect((await serve(new Request("http://localhost/v1/models"), connection)).status).toBe(200);
  owner!.left();
  owner!.closed();
  while (seen.counted.length === 0) await Bun.sleep(1);
  expect(seen.counted).toEqual([499]);
});
