/** Every operation that is served, in the order in which the document shows them. To add one is to add one entry. */
import type { Operation } from "./operation.ts";
import { createChatCompletion } from "./operations/chat.ts";
import { getContract, getDocs } from "./operations/documentation.ts";
import { helloProbe, liveness, readiness, rootProbe } from "./operations/health.ts";
import { countTokens, createMessage } from "./operations/messages.ts";
import { listModels, retrieveModel } from "./operations/models.ts";
import { getRequest } from "./operations/requests.ts";
import { createResponse, deleteResponse, getResponse, listInputItems } from "./operations/responses.ts";
import { getUsage } from "./operations/usage.ts";

export const operations: readonly Operation[] = [
  listModels,
  retrieveModel,
  createChatCompletion,
  createMessage,
  countTokens,
  createResponse,
  getResponse,
  deleteResponse,
  listInputItems,
  getUsage,
  getRequest,
  liveness,
  readiness,
  rootProbe,
  helloProbe,
  getContract,
  getDocs,
];
