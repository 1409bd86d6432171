/**
 * The worker's entry point (scripts/build.ts): examines one body after another, and sends each result with the number
 * of the message that asked for it.
 */

import { fullGC } from "bun:jsc";
import { asFault } from "../../core/inference/fault.ts";
import { compact } from "../../core/protocol/json.ts";
import type { WorkerAnswer, WorkerQuestion } from "./counter.ts";
import { examine, type WorkerRequest } from "./examine.ts";
import { vocabularies } from "./vocabularies.ts";

declare const self: {
  onmessage: ((event: { data: WorkerQuestion }) => void) | null;
  postMessage(answer: WorkerAnswer): void;
};

const known = vocabularies();

self.onmessage = ({ data: { number, asked } }) => {
  void answerTo(number, asked).then((answer) => self.postMessage(answer));
};

/** After a body larger than this, garbage is collected before the next one. */
const large_bytes = 2 * 1024 * 1024;

async function answerTo(number: number, asked: WorkerRequest): Promise<WorkerAnswer> {
  const bytes = asked.body.byteLength;
  try {
    return { number, examined: await examine(asked, known) };
  } catch (thrown) {
    const { code, message, details } = asFault(thrown);
    const { param, body } = details;
    if (code === "internal_error") throw thrown;
    // A Fault may have other members (such as a cause, for the log) of any type, and not all types can be sent to
    // another thread.
    return { number, refused: { code, message, ...compact({ param, body }) } };
  } finally {
    if (bytes >= large_bytes) fullGC();
  }
}
