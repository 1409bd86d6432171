/**
 * Sessions of operators in the console. They begin with an operator's token, or with the link that a node prints on its own
 * machine. Of cookie, secret and token only the hashes are stored. Implemented by `postgres`; docs/console.md, Sessions.
 */
import type { SessionLife } from "./browser-sessions.ts";

export interface OperatorSession {
  /** The hash of the cookie. */
  hash: Uint8Array;
  /** The hash of the secret that the pages send besides the cookie. */
  secretHash: Uint8Array;
  /** `tokenHash`: of the operator's token; the session ends with it. `localUser`: the system's user who printed the link. */
  of: { tokenHash: Uint8Array } | { localUser: string };
}

export interface OperatorSessions {
  begin(session: OperatorSession): Promise<void>;
  /** Counts as a use. */
  find(hash: Uint8Array, life: SessionLife): Promise<OperatorSession | null>;
  /** False: there was none. */
  end(hash: Uint8Array): Promise<boolean>;
  /** Deletes some sessions that have ended by their age. Returns how many. */
  forget(life: SessionLife): Promise<number>;
}
