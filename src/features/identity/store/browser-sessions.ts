/**
 * Sessions of browsers, each of one person at one issuer. The browser's cookie has a secret, of which the store has the
 * hash. A session that was ended, or is too old, is not found. Implemented by `postgres`; docs/console.md, Sessions.
 */

/** The purpose of a session. `console`: for the console. `device`: for the page on which devices are approved. */
export type SessionKind = "console" | "device";

export interface BrowserSession {
  hash: Uint8Array;
  kind: SessionKind;
  personId: string;
  issuer: string;
  /** The session at the issuer (`sid`), if the issuer names it. */
  issuerSession: string | null;
  /** The issuer's tokens, encrypted. */
  tokens: Uint8Array | null;
  /** The hash of the code with which the page gets its secret once; null or absent: it gets none. */
  codeHash?: Uint8Array | null;
}

export interface KnownSession extends BrowserSession {
  createdAt: Date;
  usedAt: Date;
  /** When the issuer last confirmed the person. */
  confirmedAt: Date;
  /** The hash of the secret that the pages of the console send in addition to the cookie. */
  secretHash: Uint8Array | null;
  /** The store's time when the session was read. */
  readAt: Date;
}

/** How long a session lasts at most: without use, and in all. */
export interface SessionLife {
  idle_ms: number;
  whole_ms: number;
}

/** Which sessions end: those of one session at the issuer, or all sessions of a person. */
export type EndedAtIssuer = { issuer: string; issuerSession: string } | { personId: string };

export interface BrowserSessions {
  /** Creates a session. False: the person was suspended or forgotten meanwhile, and there is no session. */
  begin(session: BrowserSession): Promise<boolean>;
  /**
   * Finds a session, and records that it was used. It is not found if its person is suspended, or if it began before
   * the person's `notBefore`.
   */
  find(hash: Uint8Array, kind: SessionKind, life: SessionLife): Promise<KnownSession | null>;
  /**
   * Exchanges the code of a session for the secret of its page, once, and within `young_ms` of its beginning. False: there is
   * no such session, or the code is wrong, used or expired.
   */
  redeem(session: {
    hash: Uint8Array;
    codeHash: Uint8Array;
    secretHash: Uint8Array;
    young_ms: number;
  }): Promise<boolean>;
  /**
   * Gives one caller the right to ask the issuer, for `claim_ms`. False: another caller has the right, or the session
   * was confirmed since it was read.
   */
  claim(hash: Uint8Array, confirmedAt: Date, claim_ms: number): Promise<boolean>;
  /** Records that the issuer has confirmed the person. `tokens` undefined: the stored tokens stay. */
  confirmed(hash: Uint8Array, tokens?: Uint8Array | null): Promise<void>;
  /** Ends a session, and returns it; null if there was none. */
  end(hash: Uint8Array): Promise<BrowserSession | null>;
  /** Ends sessions, and approvals that no device has fetched yet. Returns how many sessions ended. */
  endAtIssuer(ended: EndedAtIssuer): Promise<number>;
  /** Deletes a number of sessions that are too old. Returns how many. */
  forget(life: SessionLife): Promise<number>;
}
