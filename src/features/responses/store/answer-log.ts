/**
 * The logs of answers: what was sent of an answer, in order, so that it can be read again from any position by any node,
 * while it is written and for a while after. A log is a copy, and no part of the book: it may be lost.
 */

/** The name of a log: its request, and the organization of that. */
export interface LogName {
  requestId: string;
  organizationId: string;
}

/**
 * `ended`: the log had its end before, and takes nothing more. `lost`: an entry before this one is missing.
 */
export type Appended = "appended" | "ended" | "lost";

export interface LogEntry {
  text: string;
  isEnd: boolean;
}

export interface AnswerLogs {
  /**
   * Writes the entry with this number; numbers begin at 0 and have no gaps. An entry that is sent twice is stored once.
   * Of two that are sent for the same place, the first counts.
   */
  append(log: LogName, number: number, entry: LogEntry): Promise<Appended>;
  /**
   * Reads some of the entries from this number on, in order; none if there are none yet. The last one of a complete log
   * `isEnd`. `lost` if the entry with this number, or one before it, is missing while later ones exist.
   */
  read(log: LogName, from: number): Promise<LogEntry[] | "lost">;
  /** Deletes logs; one that does not exist is passed over. */
  remove(logs: readonly LogName[]): Promise<void>;
}
