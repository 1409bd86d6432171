/** Which addresses of a host name are used after each response of the name server. */
import { describe, expect, test } from "bun:test";
import {
  afterAnswer,
  afterFailure,
  empty_kept_ms,
  type Resolution,
  type Rules,
  unresolved,
  wait_ms,
} from "../../../src/features/probing/resolution.ts";
import type { ResolvedAddresses } from "../../../src/features/probing/resolve.ts";

const rules: Rules = { addresses_max: 4, isOwn: false };
const answer = (addresses: string[], failedFamily: ResolvedAddresses["failedFamily"] = null): ResolvedAddresses => ({
  addresses,
  ttl_ms: null,
  failedFamily,
});
const at = (before: Resolution, addresses: string[], now_ms = 0) =>
  afterAnswer(before, answer(addresses), rules, now_ms);
const two = at(unresolved, ["10.0.0.2", "10.0.0.1"]);

describe("an answer", () => {
  test("is taken as it is: each address once, in an order of its own", () => {
    expect(two).toEqual({ addresses: ["10.0.0.1", "10.0.0.2"], problem: null, emptySince_ms: null });
    expect(at(two, ["fd00::1", "10.0.0.2", "10.0.0.2"]).addresses).toEqual(["10.0.0.2", "fd00::1"]);
  });

  test("with more addresses than may be asked is cut, everywhere alike", () => {
    const many = ["10.0.0.5", "10.0.0.3", "10.0.0.1", "10.0.0.4", "10.0.0.2"];
    const expected = { addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], problem: "many" as const };
    expect(at(unresolved, many)).toMatchObject(expected);
    expect(at(two, many.toReversed())).toMatchObject(expected);
    expect(at(unresolved, many.slice(0, 4)).problem).toBeNull();
  });

  test("leads to this machine or its link only where the name says so, each time", () => {
    for (const own of [
      "127.0.0.1",
      "127.8.8.8",
      "0.0.0.0",
      "169.254.169.254",
      "::1",
      "::",
      "fe80::1",
      "::ffff:127.0.0.1",
    ]) {
      expect(at(two, ["10.0.0.2", own])).toMatchObject({ addresses: ["10.0.0.2"], problem: "own" });
      expect(at(unresolved, [own])).toMatchObject({ addresses: [], problem: "own" });
      const said = afterAnswer(unresolved, answer([own]), { ...rules, isOwn: true }, 0);
      expect(said).toMatchObject({ addresses: [own], problem: null });
    }
  });
});

describe("nothing is taken away", () => {
  test("by whoever cannot tell, however often", () => {
    let state = two;
    for (let count = 0; count < 1000; count++) state = afterFailure(state);
    expect(state).toMatchObject({ addresses: two.addresses, problem: "failed" });
    expect(at(state, ["10.0.0.2"])).toMatchObject({ addresses: ["10.0.0.2"], problem: null });
    expect(afterFailure(unresolved)).toMatchObject({ addresses: [], problem: "failed" });
  });

  test("of the family that could not be told", () => {
    const both = at(unresolved, ["10.0.0.1", "fd00::1"]);
    const half = afterAnswer(both, answer(["10.0.0.2"], "ipv6"), rules, 0);
    expect(half).toMatchObject({ addresses: ["10.0.0.2", "fd00::1"], problem: "failed" });
    expect(afterAnswer(both, answer(["fd00::2"], "ipv4"), rules, 0).addresses).toEqual(["10.0.0.1", "fd00::2"]);
    for (const failedFamily of ["ipv4", "ipv6"] as const) {
      const nothing = afterAnswer(two, answer([], failedFamily), rules, empty_kept_ms);
      expect(nothing).toMatchObject({ addresses: two.addresses, problem: "failed" });
    }
  });

  test("by an answer without addresses, for a while", () => {
    const first = at(two, [], 1_000);
    expect(first).toMatchObject({ addresses: two.addresses, problem: "empty" });
    const last = at(first, [], 1_000 + empty_kept_ms - 1);
    expect(last).toMatchObject({ addresses: two.addresses, problem: "empty" });
    expect(at(last, [], 1_000 + empty_kept_ms)).toMatchObject({ addresses: [], problem: "empty" });
    // A response with addresses in between restarts the period for which old addresses are kept.
    expect(at(at(last, ["10.0.0.2"]), [], 1_000 + empty_kept_ms).addresses).toEqual(["10.0.0.2"]);
    // A response with an address of this machine itself is treated like one without addresses.
    expect(at(first, ["127.0.0.1"], 1_000 + empty_kept_ms)).toMatchObject({ addresses: [], problem: "own" });
  });
});

test("a name is resolved anew after the interval, sooner where its answer holds for less, but seldom enough", () => {
  expect(wait_ms(two, null, 5_000)).toBe(5_000);
  expect(wait_ms(two, 3_000, 5_000)).toBe(3_000);
  expect(wait_ms(two, 3_600_000, 5_000)).toBe(5_000);
  expect(wait_ms(two, 0, 5_000)).toBe(1_000);
  expect(wait_ms(two, 0, 100)).toBe(100);
  expect(wait_ms(unresolved, null, 5_000)).toBe(1_000);
});
