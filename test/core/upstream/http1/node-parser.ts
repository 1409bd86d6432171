// Node's own HTTP parser (llhttp), which Bun contains, for comparison: its reading of the same bytes.

import { createRequire } from "node:module";

interface NodeParser {
  initialize(type: number, resource: object): void;
  execute(bytes: Uint8Array): number | Error;
  finish(): undefined | Error;
  [callback: number]: unknown;
}
const { HTTPParser } = createRequire(import.meta.url)("node:_http_common") as {
  HTTPParser: { new (): NodeParser } & Record<
    "RESPONSE" | "kOnHeadersComplete" | "kOnBody" | "kOnMessageComplete",
    number
  >;
};

/** Node's reading of the first final response: `whole` if the response is complete, whatever bytes follow it. */
export function nodeReads(bytes: Uint8Array, closes: boolean) {
  const read = { status: null as number | null, body: "", end: "open" as "open" | "whole" | "malformed" };
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.RESPONSE, {});
  parser[HTTPParser.kOnHeadersComplete] = (...details: unknown[]) => {
    if (read.status === null || read.status < 200) read.status = details[5] as number;
    return 0;
  };
  parser[HTTPParser.kOnBody] = (piece: Uint8Array) => {
    if (read.end === "open") read.body += Buffer.from(piece).toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    if ((read.status ?? 0) >= 200) read.end = "whole";
  };
  const failed = parser.execute(bytes) instanceof Error || (closes && parser.finish() instanceof Error);
  return failed && read.end === "open" ? { ...read, end: "malformed" as const } : read;
}
