/** The list of all operations, to which a new one is added. */

import { createChatCompletion } from "../core/operations/chat.ts";
import { countTokens } from "../core/operations/count-tokens.ts";
import { helloProbe, liveness, operatorReadiness, readiness, rootProbe } from "../core/operations/health.ts";
import { countInputTokens } from "../core/operations/input-tokens.ts";
import { createMessage } from "../core/operations/messages.ts";
import { getMetrics } from "../core/operations/metrics.ts";
import { listModels, retrieveModel } from "../core/operations/models.ts";
import type { Operation } from "../core/operations/operation.ts";
import { getRequest } from "../core/operations/requests.ts";
import { createResponse } from "../core/operations/responses.ts";
import { getUsage } from "../core/operations/usage.ts";
import { getContract, getDocs, getDocsScript } from "../features/openapi/operation.ts";
import { createCompletion } from "../features/operations/completions.ts";
import { createEmbeddings } from "../features/operations/embeddings.ts";
import { createRerank, createRerankV2 } from "../features/operations/rerank.ts";
import { compactResponse } from "../features/responses/compact.ts";
import { cancelResponse, deleteResponse, getResponse, listInputItems } from "../features/responses/operations.ts";
import { connectResponses } from "../features/websocket/connect.ts";

/** The contract, in the order in which the document shows it. */
export const operations: readonly Operation[] = [
  listModels,
  retrieveModel,
  createChatCompletion,
  createMessage,
  countTokens,
  createResponse,
  compactResponse,
  countInputTokens,
  createCompletion,
  createEmbeddings,
  createRerank,
  createRerankV2,
  getResponse,
  deleteResponse,
  cancelResponse,
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

/** The files of the page that shows the contract. They are served, but are not part of it. */
export const unlistedOperations: readonly Operation[] = [getDocsScript];

/** Upgrades to a WebSocket, at paths of other operations. */
export const upgrades: readonly Operation[] = [connectResponses];

/** Everything that clients may rely on. */
export const contract: readonly Operation[] = [...operations, ...upgrades];

/** On the operator's own port if there is one, else on the clients'. */
export const metricsOperations: readonly Operation[] = [getMetrics];

/** On the operator's own port, where /readyz may name engines. */
export const operatorProbes: readonly Operation[] = [liveness, operatorReadiness, rootProbe, helloProbe];

export const probes: readonly Operation[] = [liveness, readiness, rootProbe, helloProbe];
