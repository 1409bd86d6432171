/** Lists the operations of the core and of all features. A feature that is not listed is not served. */
import { helloProbe, liveness, operatorReadiness, rootProbe } from "../core/operations/health.ts";
import { inferenceOperations, probes } from "../core/operations/list.ts";
import { createMessage } from "../core/operations/messages.ts";
import type { Operation } from "../core/operations/operation.ts";
import { createMessageWithLimits } from "../features/claude-code/messages.ts";
import { exampled } from "../features/openapi/examples/exampled.ts";
import { getContract, getDocs, getDocsScript } from "../features/openapi/operation.ts";
import { createCompletion } from "../features/operations/completions.ts";
import { createEmbeddings } from "../features/operations/embeddings.ts";
import { createRerank, createRerankV2 } from "../features/operations/rerank.ts";
import { getRequest } from "../features/receipts/requests.ts";
import { compactResponse } from "../features/responses/compact.ts";
import { cancelResponse, deleteResponse, getResponse, listInputItems } from "../features/responses/operations.ts";
import { connectResponses } from "../features/responses/websocket/connect.ts";
import { getMetrics } from "../features/telemetry/operation.ts";

/** The documented operations, in the document's order. */
export const operations: readonly Operation[] = exampled([
  ...inferenceOperations.map((one) => (one === createMessage ? createMessageWithLimits : one)),
  getRequest,
  ...probes,
  compactResponse,
  createCompletion,
  createEmbeddings,
  createRerank,
  createRerankV2,
  getResponse,
  deleteResponse,
  cancelResponse,
  listInputItems,
  getContract,
  getDocs,
]);

/** The files of the page that shows the contract, which are served but not documented. */
export const unlistedOperations: readonly Operation[] = [getDocsScript];

/** Upgrades to a WebSocket, at paths of other operations. */
export const upgrades: readonly Operation[] = [connectResponses];

/** All operations on which clients may rely. */
export const contract: readonly Operation[] = [...operations, ...upgrades];

/** The operations that are served on the operator's own port if there is one, else on the clients'. */
export const metricsOperations: readonly Operation[] = [getMetrics];

/** The probes on the operator's own port, where /readyz may name engines. */
export const operatorProbes: readonly Operation[] = [liveness, operatorReadiness, rootProbe, helloProbe];
