// Sends the requests of questions.ts directly to an engine, and writes its raw responses to test/engines/recorded.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type UpstreamProtocol, upstreamCodecs } from "../../../src/core/upstream/codecs.ts";
import type { RealEngine } from "./engines.ts";
import { questionsOf } from "./questions.ts";

/** The recorded responses of an engine. */
export interface Recording {
  engine: string;
  version: string;
  dialect: string;
  answers: RecordedAnswer[];
}

export interface RecordedAnswer extends RawAnswer {
  protocol: UpstreamProtocol;
  question: string;
}

export interface RawAnswer {
  status: number;
  contentType: string;
  /** The body exactly as the engine sent it. */
  body: string;
}

export const recordings = join(import.meta.dir, "../../engines/recorded");
/** How long a response may take: at the first request for log probabilities, vLLM compiles code. */
const answer_ms = 5 * 60_000;

/** Sends a request to an engine directly, without the service. */
export async function rawAnswer(url: string, body: object, key?: string): Promise<RawAnswer> {
  const response = await fetch(url, {
    method: "POST",
    // llama.cpp closes the connection after a stream, although its response header says keep-alive.
    headers: {
      "content-type": "application/json",
      connection: "close",
      ...(key && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(answer_ms),
  });
  const contentType = response.headers.get("content-type") ?? "";
  return { status: response.status, contentType, body: await response.text() };
}

export async function record(name: string, engine: RealEngine, root: string): Promise<Recording> {
  const answers: RecordedAnswer[] = [];
  for (const protocol of engine.protocols)
    for (const { name: question, body } of questionsOf(protocol)) {
      // In Responses, transformers' server streams by default.
      const asked = { model: engine.model, stream: false, ...body };
      const answer = await rawAnswer(`${root}/v1${upstreamCodecs[protocol].path}`, asked, engine.key);
      answers.push({ protocol, question, ...answer });
    }
  const { version, dialect } = engine;
  const recording = { engine: name, version, dialect, answers };
  writeFileSync(join(recordings, `${name}.json`), `${JSON.stringify(recording, null, 2)}\n`);
  return recording;
}
