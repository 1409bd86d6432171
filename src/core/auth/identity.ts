/** The identity settings in force: the issuers that Sluice trusts to identify people, and the rules. Types alone. */
import type { Scope } from "../store/directory.ts";
import type { PersonKind, PersonRole } from "../store/people.ts";

export interface Identity {
  /** The origin that clients call, without a slash at its end; null: there are no sign-ins. */
  serviceUrl: string | null;
  consoleUrl: string | null;
  issuers: readonly Issuer[];
  /** The rules of membership in their order: the first match in an organization counts. */
  rules: readonly Rule[];
  /** How long a person's last known groups stay valid while the issuer sends none. */
  groupsMaxAge_ms: number;
  /** Whether the keys of a person who lost the membership are revoked. */
  keysOfLeavers: "revoke" | "keep";
  /** How long a session of the console lasts without use, and in all. */
  sessionIdle_ms: number;
  sessionMax_ms: number;
  /** How long a person's keys work after the issuer last confirmed the person. */
  confirmedMax_ms: number;
  /** Whether a sign-in of Claude Code also gives it the list of models. */
  claudeCodeSettings: boolean;
}

/** An issuer of OpenID Connect. */
export interface Issuer {
  /** The issuer's identifier, exactly as in the claim `iss`. */
  issuer: string;
  /** The name of the issuer on the sign-in button. */
  name: string;
  /** The client id for sign-ins; null: nobody signs in through this issuer. */
  clientId: string | null;
  clientSecret: string | null;
  /** The scopes that a sign-in asks for. `parameters`: further parameters of its authorization request. */
  scopes: readonly string[];
  parameters: Readonly<Record<string, string>>;
  /** The audiences that a caller's identity token may have; if there are none, no token is accepted. */
  audiences: readonly string[];
  algorithms: readonly string[];
  /** The claims that together identify a person. */
  subject: readonly string[];
  groupsClaim: string;
}

/** A rule of membership: people who have the claim become members in the role. */
export interface Rule {
  /** The issuer to which the rule applies; null: the only issuer that is configured. */
  issuer: string | null;
  claim: string;
  /** The wanted value of the claim: an item of its list (`has`), or its whole text (`is`). */
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
