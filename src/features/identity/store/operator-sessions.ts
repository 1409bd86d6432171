/**
 * Sessions of operators in the console. They begin with an operator's token, or with the link that a node prints on its
 * own machine. Only hashes of cookie, secret and token are stored. Implemented by `postgres`; docs/console.md,
 * Sessions.
 */
import type { SessionLife } from "./browser-sessions.ts";

export interface OperatorSession {
  /** The hash of the cookie. */
  hash: Uint8Array;
  /** The hash of the secret that the pages send in addition to the cookie. */
  secretHash: Uint8Array;
  /**
   * How the session began. `tokenHash`: the hash of the operator's token, with which the session ends. `localUser`: the
   * user of the operating system who printed the link.
   */
  of: { tokenHash: Uint8Array } | { localUser: string };
}

export interface OperatorSessions {
  begin(session: OperatorSession): Promise<void>;
  /** Finds a session, and records that it was used. */
  find(hash: Uint8Array, life: SessionLife): Promise<OperatorSession | null>;
  /** Ends a session. False: there was none. */
  end(hash: Uint8Array): Promise<boolean>;
  /** Deletes a number of sessions that are too old. Returns how many. */
  forget(life: SessionLife): Promise<number>;
}
