/**
 * The logs of answers: the text of an answer in order, so that any node can read it again from any position, while it
 * is written and for some time after. A log is only a copy, with no effect on charges: it may be lost.
 */

/** The name of a log: its request and the request's organization. */
export interface LogName {
  requestId: string;
  organizationId: string;
}

/**
 * The result for an entry. `ended`: the log had an end already, and takes nothing more. `lost`: an earlier entry is
 * missing.
 */
export type Appended = "appended" | "ended" | "lost";

export interface LogEntry {
  text: string;
  isEnd: boolean;
}

export interface AnswerLogs {
  /**
   * Writes the entry with this number; numbers begin at 0 and have no gaps. An entry that is sent twice is stored once;
   * of two entries with the same number, the first counts.
   */
  append(log: LogName, number: number, entry: LogEntry): Promise<Appended>;
  /**
   * Some of the entries from this number on, in order; none if there are none yet. The last entry of a complete log has
   * `isEnd`. `lost` if this entry or an earlier one is missing while later ones exist.
   */
  read(log: LogName, from: number): Promise<LogEntry[] | "lost">;
  /** Deletes logs, if they exist. */
  remove(logs: readonly LogName[]): Promise<void>;
}
