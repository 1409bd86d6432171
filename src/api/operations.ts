/** The list of all operations, to which a new one is added. */
import { createEmbeddings } from "../features/operations/embeddings.ts";
import type { Operation } from "./operation.ts";
import { createChatCompletion } from "./operations/chat.ts";
import { compactResponse } from "./operations/compact-response.ts";
import { countTokens } from "./operations/count-tokens.ts";
import { getContract, getDocs, getDocsScript } from "./operations/documentation.ts";
import { helloProbe, liveness, operatorReadiness, readiness, rootProbe } from "./operations/health.ts";
import { countInputTokens } from "./operations/input-tokens.ts";
import { createMessage } from "./operations/messages.ts";
import { getMetrics } from "./operations/metrics.ts";
import { listModels, retrieveModel } from "./operations/models.ts";
import { getRequest } from "./operations/requests.ts";
import { createResponse } from "./operations/responses.ts";
import { cancelResponse, deleteResponse, getResponse, listInputItems } from "./operations/stored-responses.ts";
import { getUsage } from "./operations/usage.ts";
import { connectResponses } from "./websocket/connect.ts";

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
  createEmbeddings,
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
