/** The core of a node with no feature, on a ledger of Postgres and a simulated engine. */
import { admission } from "../../src/core/admission/admission.ts";
import { unreadBodies, unreadLimits } from "../../src/core/body/unread.ts";
import { lifecycle } from "../../src/core/http/frame.ts";
import { noSinks } from "../../src/core/operations/answer.ts";
import type { Dependencies } from "../../src/core/operations/dependencies.ts";
import { nothingStored } from "../../src/core/operations/stored.ts";
import { noTokenizers } from "../../src/core/operations/token-counter.ts";
import type { CatalogModel } from "../../src/core/routing/catalog.ts";
import type { Receipt } from "../../src/core/store/ledger.ts";
import { noLimits } from "../../src/core/store/plan.ts";
import { defaultTimeouts } from "../../src/core/upstream/target.ts";
import { Attempts } from "../../src/core/usage/attempts.ts";
import { inputEstimate } from "../../src/core/usage/input-estimate.ts";
import { outputCalibration } from "../../src/core/usage/output-calibration.ts";
import { runs } from "../../src/core/usage/run.ts";
import { memoryRates } from "../../src/stores/memory/rates.ts";
import { ledger } from "../../src/stores/postgres/ledger.ts";
import { plentifulBounds } from "../harness/bounds.ts";
import { attemptsParts } from "../harness/patience.ts";
import type { Store } from "./store/ledger-stores.ts";

export const modelId = "acme/writer-1";
const plan = { ...noLimits, name: "metered", session: 1e12, week: 1e12, month: 1e12, concurrentRequests: 100 };

interface CoreParts {
  store: Pick<Store, "db">;
  /** The organization of every caller. */
  organizationId: string;
  /** The URL of an engine of chat completions, which has the model `writer`. */
  engineUrl: string;
  /** Wraps each part of the node through which a request passes. */
  wrap?<Value extends object>(value: Value): Value;
}

export interface CoreNode {
  dependencies: Dependencies;
  /** The ids of the requests that were granted. */
  granted: string[];
  /** The record of a request of the organization. */
  receipt(requestId: string): Promise<Receipt | null>;
  /** The number of requests that hold nanos, or wait for their settlement. */
  holds(): number;
  stop(): Promise<void>;
}

export function coreNode({ store, organizationId, engineUrl, wrap = (value) => value }: CoreParts): CoreNode {
  const model: CatalogModel = {
    ...{ id: modelId, ownedBy: "acme", created: 1, contextTokens: 100_000, outputTokens_max: 10_000 },
    capabilities: new Set(["tools", "reasoning"]),
    prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: 4000 },
    extraParams: [],
    routes: [
      {
        upstream: { name: "main", url: engineUrl, protocol: "openai-chat", apiKey: null, timeouts: defaultTimeouts },
        ...{ model: "writer", priority: 0, weight: 1 },
      },
    ],
  };
  const granted: string[] = [];
  const book = ledger(store.db, { recovery: "checkpoint" });
  const admitting = admission({
    ledger: book,
    // The lease is so long, and checkpoints are so rare, that nothing but a settlement ends a hold.
    metering: { lease_s: 600, checkpoint_s: 600, sweep_s: 600, currency: "USD" },
    grant_ms: () => 10_000,
  });
  const estimate = inputEstimate();
  const attempting = attemptsParts({ settings: () => ({ unstreamed_tokens_max: 0 }) });
  const dependencies: Dependencies = {
    catalog: () => ({ models: new Map([[modelId, model]]), plans: new Map([[plan.name, plan]]) }),
    authenticate: async () => principal(organizationId) as never,
    currency: "USD",
    consoleUrl: () => null,
    standings: { begin: (principal) => ({ principal, [Symbol.dispose]() {} }) },
    runs: runs(
      wrap({
        admission: {
          enter: async (entry, how) => {
            const reservation = await admitting.enter(entry, how);
            granted.push(entry.requestId);
            return reservation;
          },
        },
        inputEstimate: estimate,
        tokenizing: () => null,
        outputCalibration: outputCalibration(),
        watcher: { granted() {}, ended() {} },
        open: (attemptRequest) => new Attempts(attempting, attemptRequest),
      } as Parameters<typeof runs>[0]),
    ),
    ledger: book,
    rates: memoryRates(() => performance.now()),
    refused: { add() {}, find: async () => null },
    inputEstimate: estimate,
    stored: nothingStored,
    sinks: noSinks,
    arrivals: { take() {} },
    tokenCounter: noTokenizers,
    codexModels: () => [],
    fitted: async (_call, _model, { turns }) => JSON.stringify(turns).length,
    messages: () => ({ keep_billing_line: false }) as never,
    limits: {
      ...{
        body_bytes_max: 1e7,
        body_depth_max: 100,
        body_values_max: 100_000,
        body_members_max: 60_000,
        body_names_max: 60_000,
        body_ratio_max: 100,
        body_read_ms: 5_000,
      },
      ...{ first_event_hold_ms: 5_000, heartbeat_ms: 5_000, idle_ms: 60_000 },
    },
    bounds: plentifulBounds(),
    unread: unreadBodies(unreadLimits(1e7)),
    readiness: () => [],
    routes: async () => [],
    shedsConnection: () => false,
    images: () => ({ deny_private: false, denied_hosts: [] }),
    configurationHash: () => "",
    lifecycle: lifecycle(),
    traces: null,
    metrics: { decision() {}, request() {}, shed() {}, unauthenticated() {}, render: async () => "" },
    log: { request() {}, event() {}, flush() {} },
    newId: () => Bun.randomUUIDv7().replaceAll("-", ""),
  };
  return {
    dependencies,
    granted,
    receipt: (requestId) => book.receipt(organizationId, requestId),
    holds: () => admitting.holds() + admitting.waitingSettlements(),
    async stop() {
      await admitting.stop();
      attempting.client.close();
    },
  };
}

function principal(organizationId: string) {
  const key = {
    id: "key_00000000000070008000000000000001",
    scopes: ["inference:create", "models:read", "usage:read"],
    models: null,
  };
  const organization = { id: organizationId, plan: plan.name, keepsContent: true };
  return { key, organization, rates: [], person: null, secretHash: "" };
}
