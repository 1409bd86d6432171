// The comparison of two nodes' responses ignores IDs, secrets and times, and no other difference.

import { expect, test } from "bun:test";
import { Draw } from "../../scripts/compare/draw.ts";
import { Masks } from "../../scripts/compare/masks.ts";
import { faultyRequest, operations, plainRequests } from "../../scripts/compare/requests.ts";

const answer = (id: string, parent: string, status: string) =>
  `HTTP/1.1 200 OK\nx-request-id: req_${id}\n\n{"id":"resp_${id}","created_at":1790000000.5,"previous":"resp_${parent}","status":"${status}"}`;
const one = "0123456789abcdef0123456789abcdef";
const other = "fedcba9876543210fedcba9876543210";

test("answers that differ in ids alone are alike", () => {
  const [old, recent] = [new Masks(false), new Masks(false)];
  expect(old.mask(answer(one, one, "completed"))).toBe(recent.mask(answer(other, other, "completed")));
});

test("so are those that differ in what each node measures of itself, and in its port", () => {
  const node = (port: number, pace: number) =>
    `{"name":"host:${port}","requests_per_second":${pace},"first_part_p95_ms":${port},"running":1}`;
  const of = (text: string) => new Masks(false).mask(text);
  expect(of(node(4001, 3.8))).toBe(of(node(40_122, 4)));
  expect(of(node(4001, 3.8))).not.toBe(of(node(4001, 3.8).replace('"running":1', '"running":2')));
});

test("an id that is another one than before differs, and so does any word", () => {
  const of = (text: string) => new Masks(false).mask(text);
  expect(of(answer(one, one, "completed"))).not.toBe(of(answer(one, other, "completed")));
  expect(of(answer(one, one, "completed"))).not.toBe(of(answer(one, one, "incomplete")));
});

test("a message may be in other words only where that is wanted", () => {
  const refusal = (message: string) => `{"error":{"message":"${message}","code":"invalid_value"}}`;
  const [strict, lenient] = [new Masks(false), new Masks(true)];
  expect(strict.mask(refusal('not \\"so\\"'))).not.toBe(strict.mask(refusal("otherwise")));
  expect(lenient.mask(refusal('not \\"so\\"'))).toBe(lenient.mask(refusal("otherwise")));
  expect(lenient.mask(refusal("a"))).not.toBe(lenient.mask(refusal("a").replace("invalid_value", "missing_field")));
});

test("every operation of both contracts is asked, and a seed draws the same faults again", () => {
  const plain = plainRequests(new Draw(1));
  for (const { method, path, port } of operations) {
    const asked = plain.some(({ head: [line], ...request }) => {
      const [verb, target = ""] = line!.split(" ");
      return request.port === port && verb === method && matches(path, target);
    });
    expect(asked, `${method} ${path}`).toBe(true);
  }
  const drawn = (seed: number) => {
    const draw = new Draw(seed);
    return Array.from({ length: 200 }, () => faultyRequest(draw));
  };
  expect(drawn(7)).toEqual(drawn(7));
  expect(drawn(7)).not.toEqual(drawn(8));
});

function matches(path: string, target: string): boolean {
  const pattern = path.split("{id}").map((piece) => piece.replace(/[.*+?^$()[\]\\|]/g, "\\$&"));
  return new RegExp(`^${pattern.join("[^/]+")}$`).test(target);
}
