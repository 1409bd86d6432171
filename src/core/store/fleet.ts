/** The processes of the fleet, as each reports itself every few seconds: docs/operating.md, The fleet. */

/** The start of a node. Its workers share it. */
export interface NodeIdentity {
  /** A UUID. */
  id: string;
  startedAt: Date;
}

export interface ProcessReport extends ReportDetails {
  node: NodeIdentity;
  /** 0: the process is the whole node. */
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
  /** The conditions of exact admission that fail, in words. Empty: the process is ready. */
  problems: string[];
  figures: Figures;
  /** When the certificate that clients are shown expires (RFC 3339); null: none is. Reports of 0.2.0 don't have it. */
  certificateExpiresAt?: string | null;
  /** At most `engines_max`. */
  engines: EngineSeen[];
  /** The number of further engines. */
  enginesLeftOut: number;
}

/** The rates are those of requests that ended in the last half minute. */
export interface Figures {
  inputTokensPerSecond: number;
  outputTokensPerSecond: number;
  requestsPerSecond: number;
  failuresPerSecond: number;
  /** Requests with a hold on usage. */
  running: number;
  /** Requests that wait for room at an engine. One may wait for several engines, and counts at each. */
  waiting: number;
  /** How long the requests that ended in the last half minute waited for their first part. */
  firstParts: FirstParts[];
}

/** The number of requests whose first part came within this time, and not within a shorter one of the list. */
export interface FirstParts {
  /** Null: longer than all others of the list. */
  within_s: number | null;
  requests: number;
}

/** An engine as one process sees it. */
export interface EngineSeen {
  upstream: string;
  /** The address, where the name of the upstream has several. */
  replica: string | null;
  /** The number of routes to it in each state. */
  states: Record<string, number>;
  /** In flight. */
  requests: number;
  tokens: number;
  waiting: number;
  /** The most requests that the process may have there now; null: no limit. Reports of 0.1 don't have it. */
  requests_max?: number | null;
}

export const engines_max = 256;

/** Two limits together; null: no limit. */
export function limitSum(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

export interface StoredReport extends ProcessReport {
  /** The time since the report, by the store's clock. */
  age_ms: number;
}

export interface FleetReports {
  /** Replaces the last report of this process. */
  report(report: ProcessReport): Promise<void>;
  /**
   * The processes of the fleet that were not silent at this one's last report, with itself. A process that has never
   * reported knows of none but itself.
   */
  processes(): number;
  /** The process stops. */
  leave(node: NodeIdentity, worker: number): Promise<void>;
  /** Removes the reports that are older than this. */
  forget(age_ms: number): Promise<void>;
}

export interface Fleet {
  /** The last report of each process, the oldest node first; `processes_max` at most. */
  listProcesses(): Promise<StoredReport[]>;
}

export const processes_max = 2_000;

/** A process that has not reported for so long is silent: five reports did not come. */
export const silent_ms = 10_000;
