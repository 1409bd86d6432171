/** What the routes need of the rooms behind them; `main.ts` fills it. Everything arrives here, nothing is fetched. */
import type { Admission } from "../admission/admission.ts";
import type { InputEstimate } from "../admission/estimate.ts";
import type { Principal } from "../auth/authenticate.ts";
import type { MessagesOptions } from "../protocol/anthropic-messages/decode-request.ts";
import type { Catalog } from "../routing/catalog.ts";
import type { RouterSettings } from "../routing/open.ts";
import type { Ledger } from "../store/ledger.ts";
import type { ResponseStore } from "../store/responses.ts";
import type { TokenCounter } from "../tokens/counter.ts";
import type { OutputCalibration } from "../usage/calibration.ts";
import type { RefusedLog } from "../usage/refused.ts";
import type { BodyLimits } from "./body.ts";
import type { Call } from "./call.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

export interface House {
  /** The catalog in force at this moment. */
  catalog(): Catalog;
  authenticate(headers: Headers): Promise<Principal>;
  admission: Admission;
  ledger: Pick<Ledger, "windows" | "receipt">;
  /** Receipts of requests that were refused. */
  refused: Pick<RefusedLog, "add" | "find">;
  inputEstimate: InputEstimate;
  /** Responses that can be gone on from. */
  responses: { store: ResponseStore; settings(): ResponseSettings };
  tokenCounter: Pick<TokenCounter, "examine">;
  outputCalibration: OutputCalibration;
  routing(): RouterSettings;
  messages(): MessagesOptions;
  limits: BodyLimits & StreamLimits;
  /** What must hold for exact admission; each answers null, or why not. */
  checks: readonly ReadinessCheck[];
  lifecycle: Lifecycle;
  metrics: Metrics;
  log: Log;
  /** A request has ended, its last byte written: logged, counted, no longer open. */
  closed(call: Call, status: number): void;
  /** 32 hex digits of a UUIDv7. */
  newId(): string;
  /** Of the contract. */
  contractVersion: string;
}

export interface ResponseSettings {
  /** Off: none is kept, and none is found. */
  store: boolean;
  /** Of each organization's together. */
  organization_bytes_max: number;
}

export interface StreamLimits {
  /** How long the 200 of a stream is held back for the first part of the answer. */
  first_event_hold_ms: number;
  /** The longest silence on a stream. */
  heartbeat_ms: number;
}

export interface ReadinessCheck {
  name: string;
  /** A warning shows in /readyz?verbose and never makes it fail. */
  severity: "required" | "warning";
  /** Null when it holds, else a sentence without addresses or secrets. */
  run(): Promise<string | null>;
}
