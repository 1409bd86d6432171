/**
 * Sign-ins of devices. A sign-in is a key of kind `sign-in`, whose secrets are its access tokens, and a family of refresh
 * tokens, each of which is used once (docs/identity.md, Tokens). Implemented by `postgres`.
 */

import type { NewSecret, Scope } from "../../../core/store/directory.ts";
import type { EndedAtIssuer } from "./browser-sessions.ts";

/** An access token's secret, and the time for which the token is valid. */
export interface NewAccessToken {
  secret: NewSecret;
  lasts_ms: number;
}

/**
 * The rights of a sign-in's access tokens when they were issued. At each look-up, the current membership decides what
 * the tokens may do.
 */
export interface SignInRights {
  organizationId: string;
  scopes: readonly Scope[];
  models: readonly string[] | null;
}

export interface NewSignIn extends SignInRights {
  /** The id of the sign-in's key: `key_` + UUIDv7 hex. */
  keyId: string;
  personId: string;
  issuer: string;
  issuerSession: string | null;
  /** The issuer's tokens, encrypted. */
  tokens: Uint8Array | null;
  /** The duration of the sign-in; null: it lasts as long as the issuer confirms the person. */
  lasts_ms: number | null;
  agent: string;
  address: string;
  access: NewAccessToken;
  refreshHash: Uint8Array;
}

/** A sign-in whose refresh token is being used. Only one caller at a time may use a refresh token of a sign-in. */
export interface Refreshing {
  /** The ID of the claim, which gives one caller the sole use of the refresh token for now. */
  claim: string;
  keyId: string;
  personId: string;
  organizationId: string;
  issuer: string;
  tokens: Uint8Array | null;
}

export type RefreshBegun =
  | ({ is: "begun" } & Refreshing)
  /**
   * The token was used a moment ago. The same successor (the next refresh token) is returned again, because the first
   * response may have been lost.
   */
  | { is: "repeated"; keyId: string; successor: Uint8Array }
  /** Another caller is using a refresh token of this sign-in. */
  | { is: "busy" }
  /** The token was used before, perhaps by a thief, so the whole sign-in has ended. */
  | { is: "reused" }
  | { is: "unknown" };

export interface Refreshed {
  claim: string;
  keyId: string;
  /**
   * The hash of the used refresh token; the hash of its successor (the next refresh token); and the successor,
   * encrypted.
   */
  usedHash: Uint8Array;
  nextHash: Uint8Array;
  successor: Uint8Array;
  access: NewAccessToken;
  /** The issuer's tokens; undefined: the stored tokens stay. */
  tokens: Uint8Array | null | undefined;
  rights: Omit<SignInRights, "organizationId">;
}

export interface SignIns {
  /** Creates a sign-in. "gone": the person, the organization or the membership does not exist. */
  begin(signIn: NewSignIn): Promise<"begun" | "gone">;
  /**
   * Begins the use of a refresh token. `claim`: a new UUID, which identifies this use. `repeat_ms`: the time after a
   * token's use within which the same successor is returned again.
   */
  beginRefresh(hash: Uint8Array, times: { claim: string; claim_ms: number; repeat_ms: number }): Promise<RefreshBegun>;
  /**
   * Stores the successor of a refresh token. False: another caller has taken over the claim meanwhile, or the sign-in
   * has ended.
   */
  completeRefresh(refreshed: Refreshed): Promise<boolean>;
  /** Gives up the claim without using the token. */
  releaseRefresh(keyId: string, claim: string): Promise<void>;
  /** Adds an access token to a key. Returns the key's scopes; null if the key has ended. */
  addAccessToken(keyId: string, access: NewAccessToken): Promise<readonly Scope[] | null>;
  /** Ends one access token of a workload. False: there is no such token with this hash. */
  endAccessToken(hash: Uint8Array): Promise<boolean>;
  /** Ends a sign-in with all of its tokens, on every node within a second. False: the sign-in had ended before. */
  end(keyId: string, why: string): Promise<boolean>;
  /** The id of the sign-in to which an access or refresh token with this hash belongs; null: none. */
  ofToken(hash: Uint8Array): Promise<string | null>;
  endAtIssuer(ended: EndedAtIssuer, why: string): Promise<number>;
  /** Deletes access tokens that ended a day ago, and used refresh tokens of a month ago. */
  forget(): Promise<number>;
}
