// Fuzzes the parser of engines' HTTP/1.1 responses: the result does not depend on how the bytes are split, and agrees
// with Node's parser.

import fc from "fast-check";
import { nodeReads } from "../core/upstream/http1/node-parser.ts";
import { bytesOf, reads, responses } from "../core/upstream/http1/responses.ts";
import { cutAt } from "../harness/cut.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law, same } from "./fuzzer.ts";
import { mutated } from "./mutation.ts";

const ms_per_kb = 5;
const seeds = [
  "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n5;a=b\r\nworld\r\n0\r\nx: y\r\n\r\n",
  "HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.0 200\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
];
const pieces = [
  "\r\n",
  "\n",
  "\r",
  "\r\n\r\n",
  ":",
  "0\r\n\r\n",
  "ff",
  "content-length: 5\r\n",
  "chunked",
  ",",
  "\x00",
  "é",
];
const bytes = fc.oneof(responses, mutated(seeds, pieces).map(bytesOf), fc.uint8Array({ maxLength: 300 }));
const cuts = fc.array(fc.nat(), { maxLength: 12 });

export const responsesFuzzer: Fuzzer = {
  name: "responses",
  properties: {
    "any bytes are read alike, however they are cut": law(bytes, cuts, fc.boolean(), (response, at, closes) => {
      const whole = affordable(response.length, ms_per_kb, () => reads([response], closes));
      same(reads(cutAt(response, at), closes), whole);
    }),
    "what it takes for a whole response, Node's parser reads alike": law(bytes, fc.boolean(), (response, closes) => {
      const { end, status, body } = reads([response], closes);
      if (end !== "whole") return;
      const node = nodeReads(response, closes);
      same({ status: node.status, body: node.body }, { status, body });
    }),
  },
};
