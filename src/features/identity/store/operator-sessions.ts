/**
 * Sessions of operators in the console. They begin with an operator's token, or with a link that a node prints on its
 * own machine. Of cookie, secret and token, only hashes are stored. Implemented by `postgres`; docs/console.md,
 * Sessions.
 */
import type { SessionLife } from "./browser-sessions.ts";

export interface OperatorSession {
  /** The hash of the secret in the cookie. */
  hash: Uint8Array;
  /** The hash of the secret that the pages send in addition to the cookie. */
  secretHash: Uint8Array;
  /**
   * The origin of the session. `tokenHash`: the hash of the operator's token; the session ends when the token does.
   * `localUser`: the user of the operating system who printed the link.
   */
  of: { tokenHash: Uint8Array } | { localUser: string };
}

export interface OperatorSessions {
  begin(session: OperatorSession): Promise<void>;
  /** Finds a session, and records that it was used. */
  find(hash: Uint8Array, life: SessionLife): Promise<OperatorSession | null>;
  /** Ends a session. False: there was no such session. */
  end(hash: Uint8Array): Promise<boolean>;
  /** Deletes some of the sessions that are too old. Returns the number of deleted sessions. */
  forget(life: SessionLife): Promise<number>;
}
