/**
 * Sessions of operators in the console: of somebody who typed an operator's token into the page for signing in, or opened the
 * link that a node prints on its own machine. Cookie, secret and token are known by their hashes alone. Implemented by
 * `postgres`; docs/console.md, Sessions.
 */
import type { SessionLife } from "./browser-sessions.ts";

export interface OperatorSession {
  /** The hash of the cookie. */
  hash: Uint8Array;
  /** The hash of the secret that the pages send besides the cookie. */
  secretHash: Uint8Array;
  /** `tokenHash`: of the operator's token, which the session does not outlive. `localUser`: the system's user who printed the link. */
  of: { tokenHash: Uint8Array } | { localUser: string };
}

export interface OperatorSessions {
  begin(session: OperatorSession): Promise<void>;
  /** Counts as a use. */
  find(hash: Uint8Array, life: SessionLife): Promise<OperatorSession | null>;
  /** False: there was none. */
  end(hash: Uint8Array): Promise<boolean>;
  /** Deletes what is older. */
  forget(life: SessionLife): Promise<number>;
}
