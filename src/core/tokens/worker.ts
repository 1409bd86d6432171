/** The worker: one body after another, each answered by its number. It is an entry point (scripts/build.ts). */

import { fullGC } from "bun:jsc";
import { compact } from "../inference/compact.ts";
import { asFault } from "../inference/fault.ts";
import type { WorkerAnswer, WorkerQuestion } from "./counter.ts";
import { type ExamineRequest, examine } from "./examine.ts";
import { vocabularies } from "./vocabularies.ts";

declare const self: {
  onmessage: ((event: { data: WorkerQuestion }) => void) | null;
  postMessage(answer: WorkerAnswer): void;
};

const known = vocabularies();

self.onmessage = ({ data: { number, asked } }) => {
  void answerTo(number, asked).then((answer) => self.postMessage(answer));
};

/** Garbage of a larger body is collected before the next one, while the worker serves nobody. */
const large_bytes = 2 * 1024 * 1024;

async function answerTo(number: number, asked: ExamineRequest): Promise<WorkerAnswer> {
  const bytes = asked.body.byteLength;
  try {
    return { number, examined: await examine(asked, known) };
  } catch (thrown) {
    const { code, message, details } = asFault(thrown);
    const { param, body } = details;
    if (code === "internal_error") throw thrown;
    // A Fault may have other members (a cause, for the log) of any type, not all of which can be sent.
    return { number, refused: { code, message, ...compact({ param, body }) } };
  } finally {
    if (bytes >= large_bytes) fullGC();
  }
}
