/** Asks an engine for a path beside its API, with the key, the headers and the certificates of requests. */

import { Cancellation } from "../../core/time/cancellation.ts";
import { upstreamCodecs } from "../../core/upstream/codecs.ts";
import type { Client } from "../../core/upstream/http1/client.ts";
import type { Reply } from "../../core/upstream/http1/exchange.ts";
import { headersTo } from "../../core/upstream/send.ts";
import type { Upstream } from "../../core/upstream/target.ts";

/** Throws if the engine does not answer within `answer_ms_max`. */
export function asked(
  client: Pick<Client, "get">,
  upstream: Upstream,
  path: string,
  answer_ms_max: number,
): Promise<Reply> {
  return client.get({
    url: new URL(path, upstream.url).href,
    address: upstream.address,
    upstream: upstream.name,
    headers: headersTo(upstream, upstreamCodecs[upstream.protocol]),
    tls: upstream.tls ?? null,
    connect_ms: upstream.timeouts.connect_ms,
    signal: Cancellation.timeout(answer_ms_max),
  });
}
