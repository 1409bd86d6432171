/** The identity settings in force: the issuers that Sluice trusts to identify people, and the rules. Types alone. */
import type { Scope } from "../store/directory.ts";
import type { PersonKind, PersonRole } from "../store/people.ts";

export interface Identity {
  /** The origin that clients call, without a slash at its end; null: there are no sign-ins. */
  serviceUrl: string | null;
  consoleUrl: string | null;
  issuers: readonly Issuer[];
  /** In the order in which they count. */
  rules: readonly Rule[];
  /** How long the last groups count after an answer without any. */
  groupsMaxAge_ms: number;
  /** The fate of the keys of somebody who lost the membership. */
  keysOfLeavers: "revoke" | "keep";
  /** How long a session of the console lasts without use, and in all. */
  sessionIdle_ms: number;
  sessionMax_ms: number;
  /** How long a person's keys work after the issuer last confirmed the person. */
  confirmedMax_ms: number;
  /** Whether sign-ins of Claude Code take their models from here. */
  claudeCodeSettings: boolean;
}

/** An issuer of OpenID Connect. */
export interface Issuer {
  /** Exactly the text of `iss`. */
  issuer: string;
  /** The text on the button that signs in. */
  name: string;
  /** Null: nobody signs in by it. */
  clientId: string | null;
  clientSecret: string | null;
  /** Scopes that a sign-in asks for, and further parameters of its authorization request. */
  scopes: readonly string[];
  parameters: Readonly<Record<string, string>>;
  /** Audiences of tokens that are accepted from callers; none: no token is. */
  audiences: readonly string[];
  algorithms: readonly string[];
  /** The claims that together say who somebody is. */
  subject: readonly string[];
  groupsClaim: string;
}

/** A line of the rules: people who have the claim get the membership. */
export interface Rule {
  /** Null: the only issuer. */
  issuer: string | null;
  claim: string;
  /** The text in the list of that claim, or the text that it is. */
  wanted: { has: string } | { is: string };
  role: PersonRole;
  kind: PersonKind;
  organization: string | null;
  team: string | null;
  scopes: readonly Scope[];
  models: readonly string[] | null;
}

/** The unchanged claims of a token or of the issuer's answer. */
export type Claims = Readonly<Record<string, unknown>>;
