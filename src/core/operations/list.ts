/** The operations of the core, in the order in which the contract shows them. */
import { createChatCompletion } from "./chat.ts";
import { helloProbe, liveness, readiness, rootProbe } from "./health.ts";
import { createMessage } from "./messages.ts";
import { listModels, retrieveModel } from "./models.ts";
import type { Operation } from "./operation.ts";
import { createResponse } from "./responses.ts";
import { countInputTokens, countTokens } from "./token-count.ts";
import { getUsage } from "./usage.ts";

export const inferenceOperations: readonly Operation[] = [
  listModels,
  retrieveModel,
  createChatCompletion,
  createMessage,
  countTokens,
  createResponse,
  countInputTokens,
  getUsage,
];

export const probes: readonly Operation[] = [liveness, readiness, rootProbe, helloProbe];

export const coreOperations: readonly Operation[] = [...inferenceOperations, ...probes];
