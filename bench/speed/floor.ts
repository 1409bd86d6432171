// Measures the lowest possible cost of a streamed event: a proxy that consists of the node's own HTTP client and event
// streams, and copies an engine's bytes to the client, without a key, without metering and without parsing events. `bun
// bench/speed/floor.ts ENGINE_URL` starts the proxy and prints its address.

import { eventStream } from "../../src/core/http/stream.ts";
import type { StreamOwner } from "../../src/core/http/streamed-body.ts";
import { Cancellation } from "../../src/core/time/cancellation.ts";
import { client } from "../../src/core/upstream/http1/client.ts";
import type { Reply } from "../../src/core/upstream/http1/exchange.ts";

const connect_ms = 5000;
const engineUrl = process.argv[2]!;
const engines = client();
const places = new Map<string, object>();

class HandedOn implements Bun.UnderlyingSource<Uint8Array> {
  readonly #reply: Reply;
  readonly #owner: StreamOwner;

  constructor(reply: Reply, owner: StreamOwner) {
    this.#reply = reply;
    this.#owner = owner;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const pieces = await this.#reply.read();
    // The bytes are copied, because their memory is reused at the next read.
    if (pieces) return controller.enqueue(pieces.length === 1 ? pieces[0]!.slice() : Buffer.concat(pieces));
    this.#owner.closed();
    controller.close();
  }

  cancel(): void {
    this.#owner.left();
  }
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 120,
  async fetch(request) {
    const path = new URL(request.url).pathname;
    const whose = places.getOrInsertComputed(path, () => ({}));
    const headers = { "content-type": "application/json" };
    const signal = new Cancellation();
    const body = [await request.bytes()];
    const reply = await engines
      .at(whose, () => ({ url: engineUrl + path, headers, tls: null }))
      .post({ headers: {}, body, isFresh: false, connect_ms, connected() {}, signal });
    reply.flow();
    return eventStream({}, (owner) => new HandedOn(reply, owner)).open({ left: () => reply.drop(), closed() {} });
  },
});
console.log(server.url.origin);
