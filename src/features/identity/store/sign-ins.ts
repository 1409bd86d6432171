/**
 * Sign-ins of devices. A sign-in is a key of kind `sign-in`, whose secrets are its access tokens, and a family of refresh
 * tokens, each of which is used once (docs/identity.md, Tokens). Implemented by `postgres`.
 */

import type { NewSecret, Scope } from "../../../core/store/directory.ts";
import type { EndedAtIssuer } from "./browser-sessions.ts";

/** An access token, and how long it lasts. */
export interface NewAccessToken {
  secret: NewSecret;
  lasts_ms: number;
}

/**
 * The rights of its access tokens when they were issued. The membership in force decides what they may do, at each look-up.
 */
export interface SignInRights {
  organizationId: string;
  scopes: readonly Scope[];
  models: readonly string[] | null;
}

export interface NewSignIn extends SignInRights {
  /** `key_` + UUIDv7 hex. */
  keyId: string;
  personId: string;
  issuer: string;
  issuerSession: string | null;
  /** The issuer's tokens, sealed. */
  tokens: Uint8Array | null;
  /** Null: for as long as the issuer confirms the person. */
  lasts_ms: number | null;
  agent: string;
  address: string;
  access: NewAccessToken;
  /** The hash of the first refresh token. */
  refreshHash: Uint8Array;
}

/** A sign-in whose refresh token is being used, by one caller at a time. */
export interface Refreshing {
  /** Identifies the caller that may use it. */
  claim: string;
  keyId: string;
  personId: string;
  organizationId: string;
  issuer: string;
  tokens: Uint8Array | null;
}

export type RefreshBegun =
  | ({ is: "begun" } & Refreshing)
  /** Used a moment ago: the answer is the same successor, since the first answer may have been lost. */
  | { is: "repeated"; keyId: string; successor: Uint8Array }
  /** Another caller is using it. */
  | { is: "busy" }
  /** Used before: the family has ended, now at the latest. */
  | { is: "reused" }
  | { is: "unknown" };

export interface Refreshed {
  claim: string;
  keyId: string;
  /** The token that was used, and its successor, by hash and sealed. */
  usedHash: Uint8Array;
  nextHash: Uint8Array;
  successor: Uint8Array;
  access: NewAccessToken;
  /** Undefined: they stay. */
  tokens: Uint8Array | null | undefined;
  rights: Omit<SignInRights, "organizationId">;
}

export interface SignIns {
  /** "gone": the person, the organization or the membership does not exist. */
  begin(signIn: NewSignIn): Promise<"begun" | "gone">;
  /** `claim`: a new UUID. `repeat_ms`: how long the answer to a token that was used can be had again. */
  beginRefresh(hash: Uint8Array, times: { claim: string; claim_ms: number; repeat_ms: number }): Promise<RefreshBegun>;
  /** False: the claim was lost meanwhile, or the sign-in has ended. */
  completeRefresh(refreshed: Refreshed): Promise<boolean>;
  /** Gives the claim back, and uses no token. */
  releaseRefresh(keyId: string, claim: string): Promise<void>;
  /** One more access token of a key. Returns the key's scopes; null if the key has ended. */
  addAccessToken(keyId: string, access: NewAccessToken): Promise<readonly Scope[] | null>;
  /** Ends one access token of a workload. False: there is none. */
  endAccessToken(hash: Uint8Array): Promise<boolean>;
  /** Ends it with all of its tokens, on every node within a second. */
  end(keyId: string, why: string): Promise<boolean>;
  /** The sign-in to which a token belongs, by the hash of an access or a refresh token. */
  ofToken(hash: Uint8Array): Promise<string | null>;
  endAtIssuer(ended: EndedAtIssuer, why: string): Promise<number>;
  /** Deletes access tokens that ended a day ago, and used refresh tokens of a month ago. */
  forget(): Promise<number>;
}
