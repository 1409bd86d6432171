// Sends requests for operations other than chat directly to engines, and writes the raw responses to
// test/engines/recorded-operations.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Operation, operationQuestions, operations } from "./operation-questions.ts";
import type { OperationServer } from "./operation-servers.ts";
import { type RawAnswer, rawAnswer } from "./record.ts";

/** The recorded responses of an engine, with its models `embedding`, `ranking` and `tiny`. */
export interface OperationRecording {
  engine: string;
  version: string;
  answers: RecordedOperation[];
}

export interface RecordedOperation extends RawAnswer {
  operation: Operation;
  question: string;
  path: string;
}

export const operationRecordings = join(import.meta.dir, "../../engines/recorded-operations");

/** Sends the server all requests, and replaces the recorded responses of this engine for these operations. */
export async function recordOperations(server: OperationServer, root: string): Promise<OperationRecording> {
  const { engine, version, models, paths } = server;
  const answers: RecordedOperation[] = [];
  for (const operation of operations) {
    const model = models[operation];
    if (model === undefined) continue;
    const path = paths?.[operation] ?? `/v1/${operation}`;
    for (const { name: question, body } of operationQuestions[operation]) {
      const answer = await rawAnswer(root + path, { model, ...body });
      answers.push({ operation, question, path, ...answer });
    }
  }
  const file = join(operationRecordings, `${engine}.json`);
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as OperationRecording).answers : [];
  const others = before.filter(({ operation }) => models[operation] === undefined);
  const recording = { engine, version, answers: [...others, ...answers] };
  writeFileSync(file, `${JSON.stringify(recording, null, 2)}\n`);
  return recording;
}
