// Requests that one poll brings are handled together, when all of them have arrived: docs/design/runtime.md, Bun as a server.
import { expect, test } from "bun:test";
import type { Dependencies } from "../../src/http/dependencies.ts";
import { faultBodyOf } from "../../src/http/fault-body.ts";
import { frame } from "../../src/http/frame.ts";
import { json } from "../../src/http/json.ts";
import { lifecycle } from "../../src/http/lifecycle.ts";
import { plentifulBounds } from "../harness/bounds.ts";

const connection = { address: () => "192.0.2.1", isLocal: () => false, keepOpen() {} };

test("requests of one poll are handled when all have arrived, in their order", async () => {
  const steps: string[] = [];
  const needed: Partial<Dependencies> = {
    newId: () => "0".repeat(32),
    bounds: plentifulBounds(),
    lifecycle: lifecycle(),
    unread: { discard: async () => true },
    closed() {},
    letsGo: () => false,
  };
  const serve = frame(needed as Dependencies, {
    path: "/v1/models",
    faultBody: faultBodyOf(),
    work({ request }) {
      steps.push(`${request.headers.get("x-name")} is handled`);
      return json(200, {});
    },
  });
  const answers: Promise<Response>[] = [];
  for (const name of ["first", "second"]) {
    answers.push(serve(new Request("http://localhost/v1/models", { headers: { "x-name": name } }), connection));
    // What it does by itself, it does before the next arrives.
    for (let hops = 0; hops < 10; hops++) await Promise.resolve();
    steps.push(`${name} has arrived`);
  }
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
  expect(steps).toEqual(["first has arrived", "second has arrived", "first is handled", "second is handled"]);
});
