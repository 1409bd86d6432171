/**
 * Sessions of browsers, each of one person at one issuer. The browser's cookie holds a secret; the store has only its
 * hash. Ended and expired sessions are not found. Implemented by `postgres`; docs/console.md, Sessions.
 */

/** The purpose of a session. `console`: for the console. `device`: for the page on which devices are approved. */
export type SessionKind = "console" | "device";

export interface BrowserSession {
  hash: Uint8Array;
  kind: SessionKind;
  personId: string;
  issuer: string;
  /** The ID of the session at the issuer (`sid`); null: the issuer sends none. */
  issuerSession: string | null;
  /** The issuer's tokens, encrypted. */
  tokens: Uint8Array | null;
  /** The hash of the code that the page exchanges, once, for its secret; null or absent: the page gets no secret. */
  codeHash?: Uint8Array | null;
}

export interface KnownSession extends BrowserSession {
  createdAt: Date;
  usedAt: Date;
  /** The time at which the issuer last confirmed the person. */
  confirmedAt: Date;
  /** The hash of the secret that the pages of the console send in addition to the cookie. */
  secretHash: Uint8Array | null;
  /** The store's time when the session was read. */
  readAt: Date;
}

/** The longest duration of a session: without being used, and in all. */
export interface SessionLife {
  idle_ms: number;
  whole_ms: number;
}

/** The sessions to end: the sessions that belong to one session at the issuer, or all sessions of a person. */
export type EndedAtIssuer = { issuer: string; issuerSession: string } | { personId: string };

export interface BrowserSessions {
  /** Creates a session. False: no session was created, because the person was suspended or forgotten meanwhile. */
  begin(session: BrowserSession): Promise<boolean>;
  /**
   * Finds a session, and records that it was used. Not found are sessions of suspended people, and sessions that began
   * before the person's `notBefore`.
   */
  find(hash: Uint8Array, kind: SessionKind, life: SessionLife): Promise<KnownSession | null>;
  /**
   * Exchanges the code of a session for the page's secret, once, and within `young_ms` of the session's beginning.
   * False: there is no such session, or the code is wrong, used or expired.
   */
  redeem(session: {
    hash: Uint8Array;
    codeHash: Uint8Array;
    secretHash: Uint8Array;
    young_ms: number;
  }): Promise<boolean>;
  /**
   * Gives the caller, for `claim_ms`, the sole right to ask the issuer. False: another caller has the right, or the
   * session was confirmed after it had been read.
   */
  claim(hash: Uint8Array, confirmedAt: Date, claim_ms: number): Promise<boolean>;
  /** Records that the issuer has confirmed the person. `tokens` undefined: the stored tokens stay. */
  confirmed(hash: Uint8Array, tokens?: Uint8Array | null): Promise<void>;
  /** Ends a session, and returns it; null if there was no such session. */
  end(hash: Uint8Array): Promise<BrowserSession | null>;
  /**
   * Ends these sessions, and their approvals of devices that have not yet fetched tokens. Returns the number of ended
   * sessions.
   */
  endAtIssuer(ended: EndedAtIssuer): Promise<number>;
  /** Deletes some of the sessions that are too old. Returns the number of deleted sessions. */
  forget(life: SessionLife): Promise<number>;
}
