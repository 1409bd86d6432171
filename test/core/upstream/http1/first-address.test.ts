/** If an engine's name has several addresses, the first one that answers is used, even if others are silent. */
import { describe, expect, test } from "bun:test";
import { firstConnection, type SilentAddresses } from "../../../../src/core/upstream/http1/first-address.ts";
import { until } from "../../../harness/until.ts";

/** A host whose addresses answer, refuse or are silent until they are told to answer. */
function host(addresses: Record<string, "answers" | "refuses" | "silent">) {
  const tried: string[] = [];
  const closed: string[] = [];
  const answers = new Map<string, () => void>();
  const silent: SilentAddresses = new Map();
  const connect = (address: string) => {
    tried.push(address);
    const { promise, resolve, reject } = Promise.withResolvers<{ address: string; close(): void }>();
    const answer = () => resolve({ address, close: () => void closed.push(address) });
    answers.set(address, answer);
    if (addresses[address] === "answers") answer();
    if (addresses[address] === "refuses") reject(new Error(`${address} refuses`));
    return promise;
  };
  const connected = async (isGivenUp = () => false) => {
    const wait = { silent, connect_ms: 100, isGivenUp };
    return (await firstConnection(Object.keys(addresses), connect, wait)).address;
  };
  return { tried, closed, connected, answer: (address: string) => answers.get(address)!() };
}

describe("a host with two addresses", () => {
  test("is reached at the second where the first is silent; that is tried last from then on, until it answers", async () => {
    const { tried, closed, connected, answer } = host({ a: "silent", b: "answers" });
    expect(await connected()).toBe("b");
    expect(await connected()).toBe("b");
    expect(tried).toEqual(["a", "b", "b"]);
    // A connection that succeeds too late is closed.
    answer("a");
    await until(() => closed.length > 0, 5_000, "the late connection to be closed");
    expect(closed).toEqual(["a"]);
    tried.length = 0;
    expect(await connected()).toBe("b");
    expect(tried).toEqual(["a", "b"]);
  });

  test("is reached at the first alone where that answers, and at once at the second where the first refuses", async () => {
    const first = host({ a: "answers", b: "answers" });
    expect(await first.connected()).toBe("a");
    expect(first.tried).toEqual(["a"]);
    const second = host({ a: "refuses", b: "answers" });
    expect(await second.connected()).toBe("b");
    expect(second.tried).toEqual(["a", "b"]);
  });

  test("is waited for at the first, should that be slow and the second refuse", async () => {
    const { tried, connected, answer } = host({ a: "silent", b: "refuses" });
    const reached = connected();
    await until(() => tried.length === 2, 5_000, "the second to be tried");
    answer("a");
    expect(await reached).toBe("a");
  });

  test("is away if both refuse, for the reasons of both", async () => {
    expect(host({ a: "refuses", b: "refuses" }).connected()).rejects.toThrow("a refuses; Error: b refuses");
    expect(host({ a: "refuses" }).connected()).rejects.toThrow(/^a refuses$/);
  });

  test("is asked no more once nobody waits", async () => {
    const { tried, connected } = host({ a: "refuses", b: "answers" });
    void connected(() => tried.length > 0);
    await Bun.sleep(0);
    expect(tried).toEqual(["a"]);
  });
});
