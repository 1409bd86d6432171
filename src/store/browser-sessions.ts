/**
 * Sessions of browsers, each of one person at one issuer. The cookie of a browser has a secret, and the store has its hash. A
 * session that has ended, by its age, by the issuer or by hand, is not found any more. Implemented by `postgres`;
 * docs/identity.md, Sessions.
 */

/** `console`: of the console. `device`: of the page on which devices are approved. */
export type SessionKind = "console" | "device";

export interface BrowserSession {
  hash: Uint8Array;
  kind: SessionKind;
  personId: string;
  issuer: string;
  /** The session at the issuer (`sid`), if the issuer names it. */
  issuerSession: string | null;
  /** The issuer's tokens, sealed. */
  tokens: Uint8Array | null;
  /** The hash of a code for which the page gets its secret once; null or absent: it gets none. */
  codeHash?: Uint8Array | null;
}

export interface KnownSession extends BrowserSession {
  createdAt: Date;
  usedAt: Date;
  /** When the issuer last vouched for it. */
  confirmedAt: Date;
  /** The hash of the secret that the pages of the console send besides the cookie. */
  secretHash: Uint8Array | null;
  /** The store's clock at the reading. */
  readAt: Date;
}

/** How long a session lasts: without use, and in all. */
export interface SessionLife {
  idle_ms: number;
  whole_ms: number;
}

/** The sessions that end: those of one session at the issuer, or all of a person. */
export type EndedAtIssuer = { issuer: string; issuerSession: string } | { personId: string };

export interface BrowserSessions {
  begin(session: BrowserSession): Promise<void>;
  /** Counts as a use. A person who is suspended, or from whom nothing counts that was issued so early, has no session. */
  find(hash: Uint8Array, kind: SessionKind, life: SessionLife): Promise<KnownSession | null>;
  /**
   * Gives a session its page's secret for its code, once, and so long after its beginning. False: there is no such session,
   * or the code is another, used or old.
   */
  redeem(session: {
    hash: Uint8Array;
    codeHash: Uint8Array;
    secretHash: Uint8Array;
    young_ms: number;
  }): Promise<boolean>;
  /** Gives one caller the right to ask the issuer for this long. False: another has it. */
  claim(hash: Uint8Array, claim_ms: number): Promise<boolean>;
  /** The issuer has vouched again. `tokens` undefined: they stay. */
  confirmed(hash: Uint8Array, tokens?: Uint8Array | null): Promise<void>;
  /** Returns the session that has ended; null if there was none. */
  end(hash: Uint8Array): Promise<BrowserSession | null>;
  endAtIssuer(ended: EndedAtIssuer): Promise<number>;
  /** Deletes what is older. */
  forget(life: SessionLife): Promise<number>;
}
