/** The parts of a node that the operations need; `src/node/node.ts` makes the value. */

import type { Arrivals } from "../admission/arrivals.ts";
import type { Standings } from "../auth/standing.ts";
import type { Principal } from "../auth/verdict.ts";
import type { BodyLimits } from "../body/read.ts";
import type { Bounds } from "../http/bounds.ts";
import type { Call } from "../http/call.ts";
import type { FrameDependencies } from "../http/frame.ts";
import type { Log } from "../http/log.ts";
import type { Observer } from "../http/observer.ts";
import type { ImageSettings } from "../inference/media.ts";
import type { Model } from "../inference/model.ts";
import type { Currency } from "../inference/money.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import type { Catalog, CatalogModel } from "../routing/catalog.ts";
import type { RouteView } from "../routing/view.ts";
import type { Ledger } from "../store/ledger.ts";
import type { Rates } from "../store/rates.ts";
import type { Soon } from "../time/turns.ts";
import type { InputEstimate } from "../usage/input-estimate.ts";
import type { RefusedLog } from "../usage/refused.ts";
import type { Runs } from "../usage/run.ts";
import type { AnswerSinks, StreamLimits } from "./answer.ts";
import type { CodexModel } from "./codex-models.ts";
import type { StoredResponses } from "./stored.ts";
import type { TokenCounter } from "./token-counter.ts";

export interface Dependencies extends FrameDependencies {
  /** The catalog in force. A plan that did not change stays the same object. */
  catalog(): Catalog;
  authenticate(headers: Headers, address: string): Soon<Principal>;
  /** Ends running requests whose caller has lost the right to them. */
  standings: Pick<Standings, "begin">;
  arrivals: Arrivals;
  runs: Runs;
  ledger: Pick<Ledger, "windows" | "budgets" | "receipt">;
  rates: Pick<Rates, "read">;
  refused: Pick<RefusedLog, "add" | "find">;
  inputEstimate: Pick<InputEstimate, "tokens" | "unlearned" | "expected">;
  stored: StoredResponses;
  sinks: AnswerSinks;
  tokenCounter: TokenCounter;
  codexModels(models: readonly Model[]): CodexModel[];
  /** Leaves out turns of a conversation that is to be summarized until it fits, and returns its size in bytes. */
  fitted(call: Call, model: CatalogModel, request: InferenceRequest): Promise<number>;
  currency: Currency;
  /** The public address of the console, without a slash at its end; null: none is configured. */
  consoleUrl(): string | null;
  messages(): MessagesOptions;
  images(): ImageSettings;
  limits: ServingLimits;
  bounds: Bounds;
  /** The latest result of each check of readiness, without waiting. */
  readiness(): CheckResult[];
  /** The routes as each process of this node sees them, for operators only. */
  routes(): Promise<readonly RouteView[]>;
  configurationHash(): string;
  metrics: Observer;
  log: Log;
}

export interface CheckResult {
  name: string;
  /** A warning is shown by /readyz?verbose and never makes it fail. */
  severity: "required" | "warning";
  /** The problem in one sentence, without addresses or secrets; null: the check found none. */
  problem: string | null;
}

interface ServingLimits extends BodyLimits, StreamLimits {
  idle_ms: number;
}
