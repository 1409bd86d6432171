/** Gives operations the examples that the contract shows of them: requests that work as written, and answers. */
import { type Example, jsonType, type Operation } from "../../../core/operations/operation.ts";
import * as chat from "./chat.ts";
import * as messages from "./messages.ts";
import * as responses from "./responses.ts";

interface Listed {
  requests?: readonly Example[];
  /** The bodies of the success, by media type. */
  answers?: Record<string, unknown>;
}

const streamType = "text/event-stream";
const storedAnswers = { [jsonType]: responses.completed, [streamType]: responses.responseStream };

/** The examples of each operation; the key is its `operationId`. */
const listed: Record<string, Listed> = {
  createChatCompletion: {
    requests: chat.requests,
    answers: { [jsonType]: chat.completion, [streamType]: chat.completionStream },
  },
  createMessage: {
    requests: messages.requests,
    answers: { [jsonType]: messages.message, [streamType]: messages.messageStream },
  },
  countTokens: { requests: messages.countRequests },
  createResponse: { requests: responses.requests, answers: storedAnswers },
  countInputTokens: { requests: responses.countRequests },
  compactResponse: { requests: responses.compactRequests, answers: { [jsonType]: responses.compacted } },
  getResponse: { answers: storedAnswers },
  cancelResponse: { answers: { [jsonType]: responses.completed } },
};

/** The operations with their examples. Those of which this file has none stay the same objects. */
export function exampled(operations: readonly Operation[]): Operation[] {
  return operations.map((operation) => {
    const { requests, answers = {} } = listed[operation.operationId] ?? {};
    if (!requests && Object.keys(answers).length === 0) return operation;
    const { success, examples } = operation;
    const content = Object.entries(success.content).map(
      ([type, one]) => [type, type in answers ? { ...one, example: answers[type] } : one] as const,
    );
    return {
      ...operation,
      examples: requests ?? examples,
      success: { ...success, content: Object.fromEntries(content) },
    };
  });
}
