// Sends the beginnings of many large bodies with one key, and waits. Measures how much memory the service then uses.

import { type RawClient, rawClient } from "../harness/raw-client.ts";
import { resident_bytes } from "./process.ts";
import { headOf } from "./talk.ts";

export interface HeldBodies {
  /** The number of requests that were refused before their bodies were read, by error code. */
  refused: Record<string, number>;
  /** Whether all refusals have a `retry-after`. */
  haveRetryAfter: boolean;
  /** The largest growth of the process's resident memory, in bytes. */
  resident_bytes_more: number;
}

export interface Held {
  url: string;
  pid: number;
  key: string;
  connections: number;
  /** The Content-Length of each request, which sends only `sent_bytes`. */
  announced_bytes: number;
  sent_bytes: number;
  /** Whether the bodies are sent in chunks, without a Content-Length. */
  chunked?: boolean;
}

const piece = Buffer.alloc(256 * 1024, " ");
const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);
/** How long memory is observed after the bodies were sent: the service reads from a refused client for five seconds. */
const watched_ms = 8_000;

export async function heldBodies(held: Held): Promise<HeldBodies> {
  const before = resident_bytes(held.pid);
  const clients = await Promise.all(Array.from({ length: held.connections }, () => rawClient(held.url)));
  const answers = Promise.all(clients.map((client) => client.read(undefined, 60_000).catch(() => "")));
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, resident_bytes(held.pid));
  }, 50);
  try {
    await Promise.all(clients.map((client) => begin(client, held)));
    await Bun.sleep(watched_ms);
  } finally {
    clearInterval(watch);
  }
  for (const client of clients) client.leave();
  const refusals = (await answers).filter((answer) => answer.startsWith("HTTP/1.1 "));
  const codes = refusals.map((answer) => /"code":"(\w+)"/.exec(answer)?.[1] ?? "none");
  return {
    refused: Object.fromEntries([...Map.groupBy(codes, (code) => code)].map(([code, all]) => [code, all.length])),
    haveRetryAfter: refusals.every((answer) => /^retry-after: [1-9]/im.test(answer)),
    resident_bytes_more: most - before,
  };
}

async function begin(client: RawClient, { key, announced_bytes, sent_bytes, chunked }: Held): Promise<void> {
  const size = chunked ? "transfer-encoding: chunked" : `content-length: ${announced_bytes}`;
  await client.write(headOf("POST /v1/chat/completions", key, "content-type: application/json", size));
  // The service may discard the rest of a refused body, or close the connection, so a write may fail.
  for (let sent = 0; sent < sent_bytes; sent += piece.length)
    await client.write(chunked ? chunk : piece).catch(() => {});
}
