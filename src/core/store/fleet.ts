/** The processes of the fleet, as each reports itself every few seconds: docs/operating.md, The fleet. */

/** The identity of a node, which is new at each start of the node. Its workers share it. */
export interface NodeIdentity {
  /** A UUID. */
  id: string;
  startedAt: Date;
}

export interface ProcessReport extends ReportDetails {
  node: NodeIdentity;
  /** The number of the worker; 0: the process is the whole node. */
  worker: number;
  /** The host and the port where the node serves. */
  name: string;
  version: string;
  /** The hash of the configuration in force. */
  configuration: string;
}

export interface ReportDetails {
  /** The number of processes that the node should have. */
  workersWanted: number;
  isDraining: boolean;
  /** The conditions of readiness that are not met, in words. Empty: the process is ready. */
  problems: string[];
  figures: Figures;
  /**
   * When the certificate that is presented to clients expires (RFC 3339); null: there is none. Absent in reports of
   * version 0.2.0.
   */
  certificateExpiresAt?: string | null;
  /** The engines, at most `engines_max`. */
  engines: EngineSeen[];
  /** The number of engines that are not in `engines`. */
  enginesLeftOut: number;
}

/** The figures of one process. Rates are those of requests that ended in the last half minute. */
export interface Figures {
  inputTokensPerSecond: number;
  outputTokensPerSecond: number;
  requestsPerSecond: number;
  failuresPerSecond: number;
  /** The number of requests that have a hold, an amount reserved for them, in the ledger. */
  running: number;
  /** The number of requests that wait for slots at engines. A request that waits for several engines counts at each. */
  waiting: number;
  /** How long the requests that ended in the last half minute waited for the first part of their answers. */
  firstParts: FirstParts[];
}

/** The number of requests whose first part came within this time, but not within the next shorter time of the list. */
export interface FirstParts {
  /** The upper bound of the wait; null: the wait was longer than all bounds of the list. */
  within_s: number | null;
  requests: number;
}

export interface EngineSeen {
  upstream: string;
  /** The address, if the host name of the upstream has several. */
  replica: string | null;
  /** The number of routes to the engine in each state. */
  states: Record<string, number>;
  requests: number;
  tokens: number;
  waiting: number;
  /** The most requests that the process may have at this engine now; null: no limit. Absent in reports of version 0.1. */
  requests_max?: number | null;
}

export const engines_max = 256;

/** The sum of two limits; null (no limit) if either is null. */
export function limitSum(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

export interface StoredReport extends ProcessReport {
  /** The time since the report, by the store's clock. */
  age_ms: number;
}

export interface FleetReports {
  report(report: ProcessReport): Promise<void>;
  /**
   * The number of processes of the fleet, including this one, that were not silent when this process last reported.
   * Before its first report, it is 1.
   */
  processes(): number;
  leave(node: NodeIdentity, worker: number): Promise<void>;
  forget(age_ms: number): Promise<void>;
}

export interface Fleet {
  /** The last report of each process, beginning with the oldest node; at most `processes_max` reports. */
  listProcesses(): Promise<StoredReport[]>;
}

export const processes_max = 2_000;

/** A process is silent if it has not reported for this long: five reports are missing. */
export const silent_ms = 10_000;
