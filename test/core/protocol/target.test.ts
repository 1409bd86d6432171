/** The parser of request targets agrees with `new URL` on a URL. test/fuzz/heads.ts tries any text. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { targetOf } from "../../../src/core/protocol/target.ts";
import { forAll } from "./for-all.ts";

const segment = fc.string({ unit: fc.constantFrom(..."abcXYZ019-_.~%2F%20:@!$&'()*+,;=|\\ é"), maxLength: 8 });
const path = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join("/")}`);
const query = fc.option(fc.string({ unit: fc.constantFrom(..."ab=&%?/:"), maxLength: 12 }));
const host = fc.constantFrom("localhost", "a", "example.com:8080", "[::1]:80", "127.0.0.1");

test("of a URL, what the URL's own parser finds", () => {
  forAll([host, path, query, fc.boolean()], 2000, (name, at, asked, hasFragment) => {
    const url = new URL(`http://${name}${at}${asked === null ? "" : `?${asked}`}${hasFragment ? "#part?x" : ""}`);
    // The runtime passes URLs that it has already parsed once.
    expect(targetOf(url.href)).toEqual({ path: url.pathname, query: url.search.slice(1) });
  });
});

test("of a bare path, the same", () => {
  forAll([path, query], 2000, (at, asked) => {
    const target = targetOf(`${at}${asked === null ? "" : `?${asked}`}`);
    expect(target).toEqual({ path: at, query: asked ?? "" });
  });
});

test("of a path that looks like a URL, the path", () => {
  expect(targetOf("//other/metrics")).toEqual({ path: "//other/metrics", query: "" });
  expect(targetOf("http://a?x=1")).toEqual({ path: "/", query: "x=1" });
  expect(targetOf("/http://a/b")).toEqual({ path: "/http://a/b", query: "" });
});
