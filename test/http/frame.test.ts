// Whatever is thrown around a request, it is answered once and closed: docs/design/errors-and-streams.md, Errors.
import { expect, test } from "bun:test";
import type { Dependencies } from "../../src/api/dependencies.ts";
import { faultBodyOf } from "../../src/api/fault-body.ts";
import { frame } from "../../src/http/frame.ts";
import { lifecycle } from "../../src/http/lifecycle.ts";
import { Fault } from "../../src/inference/fault.ts";
import { plentifulBounds } from "../harness/bounds.ts";

const connection = { address: () => "192.0.2.1", isLocal: () => false, keepOpen() {} };

test("a defect in the record of a refusal is a 500, and the request is closed", async () => {
  const closed: number[] = [];
  const needed: Partial<Dependencies> = {
    newId: () => "0".repeat(32),
    bounds: plentifulBounds(),
    lifecycle: lifecycle(),
    unread: { discard: async () => true },
    metrics: { request() {} } as never,
    log: { request: (_, status) => void closed.push(status), event() {}, flush() {} },
    letsGo: () => false,
  };
  const serve = frame(needed as Dependencies, {
    path: "/v1/models",
    faultBody: faultBodyOf(),
    failed: () => {
      throw new Error("the counter is broken");
    },
    work: () => {
      throw new Fault("model_not_found", "There is no such model.");
    },
  });
  const response = await serve(new Request("http://localhost/v1/models"), connection);
  expect(response.status).toBe(500);
  expect(closed).toEqual([500]);
});
