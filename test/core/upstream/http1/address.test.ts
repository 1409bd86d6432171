/** The name of an engine's host must not lead to this machine's own or link-local addresses. */
import { expect, test } from "bun:test";
import { isOwnAddress } from "../../../../src/core/upstream/http1/address.ts";
import { addressesOf } from "../../../../src/core/upstream/http1/dial.ts";

const own = ["127.0.0.1", "127.255.0.9", "0.0.0.0", "169.254.169.254", "::1", "::", "fe80::1", "febf::1%eth0"];
const mapped = ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.1.1", "0:0:0:0:0:ffff:127.0.0.1"];
const others = ["10.0.0.1", "192.168.1.1", "172.17.0.1", "128.0.0.1", "169.253.0.1", "fd00::1", "2001:db8::1"];

for (const address of [...own, ...mapped]) {
  test(`${address} is one's own`, () => expect(isOwnAddress(address)).toBe(true));
}
for (const address of [...others, "fec0::1", "::2", "::ffff:10.0.0.1"]) {
  test(`${address} is another's`, () => expect(isOwnAddress(address)).toBe(false));
}

test("a name is asked where it leads elsewhere; what leads here must say so itself", async () => {
  const leads =
    (...addresses: string[]) =>
    (host: string) =>
      addressesOf(host, async () => addresses);
  expect(await leads("127.0.0.1", "10.0.0.1")("engine.test")).toEqual(["10.0.0.1"]);
  expect(leads("127.0.0.1", "::1")("engine.test")).rejects.toThrow("leads to this machine");
  expect(leads("169.254.169.254")("metadata.test")).rejects.toThrow("leads to this machine");
  expect(await leads("127.0.0.1", "::1")("localhost")).toEqual(["127.0.0.1", "::1"]);
  expect(await leads()("127.0.0.1")).toEqual(["127.0.0.1"]);
});
