// Helpers of tests of one attempt at an engine: the question (the request to the engine), and the client that sends it.

import { afterAll } from "bun:test";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import type { EngineQuestion } from "../../../src/core/upstream/ask.ts";
import { type UpstreamProtocol, upstreamCodecs } from "../../../src/core/upstream/codecs.ts";
import { type Client, client } from "../../../src/core/upstream/http1/client.ts";
import { patience } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { upstreamOf } from "../routing/models.ts";

/** A client for engines, which is closed after the tests of the file that calls this function. */
export function engineClient(): Client {
  const engines = client();
  afterAll(() => engines.close());
  return engines;
}

type Question = Partial<Omit<EngineQuestion, "upstream">> & Pick<EngineQuestion, "client">;

/**
 * A streamed question to the engine at `url`, whose caller does not disconnect; the members of `more` replace those of
 * the question.
 */
export function question(url: string, more: Question, protocol: UpstreamProtocol = "openai-chat"): EngineQuestion {
  return {
    ...{ upstream: upstreamOf(url, { protocol }), codec: upstreamCodecs[protocol], request: saying("hi"), model: "m" },
    ...{ stream: true, inputBytes: 100, outputTokens_max: 1024, patience: patience(), signal: new Cancellation() },
    identity: { responseId: "resp_1", createdAtSeconds: 1, model: "acme/m" },
    ...more,
  };
}
