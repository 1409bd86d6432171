/** One request to one engine, once: whether it may be sent again is decided by whoever knows what was shown. */
import type { InferenceRequest } from "../inference/request.ts";
import type { UpstreamAsk, UpstreamCodec } from "../protocol/codec.ts";
import type { Client, Post } from "./http1/client.ts";
import type { Reply } from "./http1/exchange.ts";
import type { Upstream } from "./target.ts";

export interface Sending extends UpstreamAsk {
  client: Client;
  upstream: Upstream;
  codec: UpstreamCodec;
  request: InferenceRequest;
  /** For whom it is. */
  identified?: { organization: string; plan: string };
  /** What divides the engine's prefix cache, as vLLM names it; null where nothing does. */
  cacheSalt?: string | null;
  /** What tells the engine whose trace it is part of. */
  traceHeaders?: Record<string, string>;
  /** On a connection of its own, because one that had served before has failed. */
  isFresh?: boolean;
}

export async function send(sending: Sending, line: Pick<Post, "connect_ms" | "connected" | "signal">): Promise<Reply> {
  const { client, upstream, codec, request, model, stream, outputTokens_max, instructionsInside } = sending;
  const asked = codec.request.encode(request, { model, stream, outputTokens_max, instructionsInside });
  return client.post({
    url: upstream.url + codec.path,
    address: upstream.address,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream, application/json",
      "user-agent": "sluice",
      ...sending.traceHeaders,
      ...credentials(upstream),
      ...upstream.headers,
      ...identityHeaders(sending),
    },
    body: JSON.stringify(sending.cacheSalt ? { ...(asked as object), cache_salt: sending.cacheSalt } : asked),
    tls: upstream.tls ?? null,
    isFresh: sending.isFresh ?? false,
    ...line,
  });
}

function identityHeaders({ upstream: { identityHeaders = {} }, identified }: Sending): Record<string, string> {
  if (!identified) return {};
  const { organization, plan } = identityHeaders;
  return {
    ...(organization ? { [organization]: identified.organization } : {}),
    ...(plan ? { [plan]: identified.plan } : {}),
  };
}

export function credentials(upstream: Upstream): Record<string, string> {
  if (upstream.apiKey === null) return {};
  return upstream.protocol === "anthropic-messages"
    ? { "x-api-key": upstream.apiKey, "anthropic-version": "2023-06-01" }
    : { authorization: `Bearer ${upstream.apiKey}` };
}
