/**
 * URLs by which an engine would fetch from inside the network are refused, in every spelling, as far as the URL itself
 * shows it.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { imageUrlProblem, refuseImages } from "../../../src/core/inference/media.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { faultOf } from "../../harness/faults.ts";
import { forAll } from "../protocol/for-all.ts";

const open = { deny_private: false, denied_hosts: [] };
const closed = { deny_private: true, denied_hosts: [] };
const says = (url: string, settings: Parameters<typeof imageUrlProblem>[1] = open) => imageUrlProblem(url, settings);

test.each([
  "https://example.com/a.png",
  "https://example.com:8443/a?b=c#d",
  "https://8.8.8.8/a.png",
  "https://[2606:4700::1]/a.png",
  "https://exämple.com/ä.png",
  "https://example.com/@a:b",
  "data:image/png;base64,AAAA",
])("%s may be fetched", (url) => {
  expect([says(url), says(url, closed)]).toEqual([null, null]);
});

test.each([
  "https://127.0.0.1/",
  "https://127.1/",
  "https://2130706433/",
  "https://0x7f.1/",
  "https://0177.0.0.1/",
  "https://0/",
  "https://localhost/",
  "https://LOCALHOST./",
  "https://a.localhost/",
  "https://%6cocalhost/",
  "https://[::1]/",
  "https://[::]/",
  "https://[0:0:0:0:0:0:0:1]/",
  "https://[::ffff:127.0.0.1]/",
  "https://[::ffff:a9fe:a9fe]/",
  "https://[64:ff9b::169.254.169.254]/",
  "https://[fe80::1]/",
  "https://[fd00:ec2::254]/",
  "https://169.254.169.254/latest/meta-data",
  "https://100.100.100.200/",
  "https://metadata.google.internal/",
  "https://metadata/",
  "https://①②⑦.0.0.1/",
])("%s is this machine's, its link's or a cloud's", (url) => {
  expect(says(url)).toBe("leads to an address that is not public");
});

test.each([
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "100.64.0.1",
  "[fc00::1]",
  "[fd12::1]",
  "[::ffff:10.0.0.1]",
  "db.internal",
  "printer.local",
  "wiki",
])("%s is refused where the setting says so", (host) => {
  expect([says(`https://${host}/a`), says(`https://${host}/a`, closed)]).toEqual([
    null,
    "leads to an address that is not public",
  ]);
});

test.each([
  ["https://user@example.com/", "holds a user name"],
  ["https://user:secret@example.com/", "holds a user name"],
  ["https://@example.com/", "holds a user name"],
  ["https://example.com\\@127.0.0.1/", "holds a control character, a space or a backslash"],
  ["https://exam\nple.com/", "holds a control character, a space or a backslash"],
  ["https://example.com/\u0000", "holds a control character, a space or a backslash"],
  ["https://example.com/a b", "holds a control character, a space or a backslash"],
  ["https://", "is not one that can be fetched"],
  ["https://256.256.256.256/", "is not one that can be fetched"],
])("%s", (url, problem) => {
  expect(says(url)).toBe(problem);
});

test("a denied host is denied with all below it, and with no other", () => {
  const settings = { deny_private: false, denied_hosts: ["evil.example"] };
  for (const host of ["evil.example", "a.evil.example", "EVIL.example.", "evil.example:8443"])
    expect(says(`https://${host}/`, settings)).toBe("leads to a host that is not allowed");
  for (const host of ["notevil.example", "evil.example.com"]) expect(says(`https://${host}/`, settings)).toBeNull();
});

test("no text makes it throw, and no address of this machine gets through in any number's spelling", () => {
  forAll([fc.string({ unit: "binary" })], 100, (text) => {
    says(text, closed);
  });
  const spelled = fc
    .integer({ min: 127 * 2 ** 24, max: 128 * 2 ** 24 - 1 })
    .chain((address) =>
      fc.constantFrom(
        String(address),
        `0x${address.toString(16)}`,
        `0${address.toString(8)}`,
        `127.${address % 2 ** 24}`,
      ),
    );
  forAll([spelled], 100, (host) => expect(says(`https://${host}/`)).not.toBeNull());
});

test("a request is refused for any of its images, with the place of the first one among its needs", () => {
  const image = (url: string) => ({ kind: "image" as const, url });
  const refusal = (urls: readonly string[], needs: InferenceRequest["needs"]) => {
    const fault = faultOf(() => refuseImages({ turns: [{ role: "user", parts: urls.map(image) }], needs }, open));
    return fault && [fault.code, fault.details.param];
  };
  const needs: InferenceRequest["needs"] = [
    { capability: "tools", param: "tools" },
    { capability: "vision", param: "messages[0].content[0]" },
  ];
  const [fine, wrong] = ["https://example.com/a.png", "https://127.0.0.1/"];
  expect(refusal([fine, fine], needs)).toBeNull();
  expect(refusal([fine, wrong], needs)).toEqual(["invalid_value", "messages[0].content[0]"]);
  expect(refusal([wrong], [])).toEqual(["invalid_value", undefined]);
});
