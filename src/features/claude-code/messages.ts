/** POST /v1/messages with what Claude Code shows of its limits, in headers and errors. */
import {
  messagesLimitRefusalHeaderNames,
  unifiedHeaderNames,
  unifiedRefusalHeaderNames,
} from "../../core/operations/headers.ts";
import { infer } from "../../core/operations/infer.ts";
import { createMessage, messagesAdapter } from "../../core/operations/messages.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { isSignedIn, messagesFault, refusalHeaders, standingHeaders } from "./limits.ts";

/** The operation `createMessage` of core, whose answers and refusals also have the headers and the error of Claude Code. */
export const createMessageWithLimits: Operation = {
  ...createMessage,
  success: { ...createMessage.success, headers: [...createMessage.success.headers, ...unifiedHeaderNames] },
  limitRefusalHeaders: [...messagesLimitRefusalHeaderNames, ...unifiedRefusalHeaderNames],
  faultBody: messagesFault,
  faultHeaders: refusalHeaders,
  handle: (dependencies, call, input) =>
    infer(dependencies, call, input as Parameters<typeof infer>[2], {
      ...messagesAdapter(dependencies),
      headers: (request, granted) => (isSignedIn(request.headers) ? standingHeaders(granted) : {}),
    }),
};
