/** The settings of OpenID Connect issuers, and of the rules by which their users get memberships. */
import { scopes } from "../../core/store/directory.ts";
import { personKinds, personRoles } from "../../core/store/people.ts";
import { choice, flag, group, list, mapping, text, whole } from "./row.ts";

const url = <const Given extends { isRequired?: true; absent?: string }>(given: Given, description: string) =>
  text({ minLength: 1, maxLength: 2048, ...given }, description);

/** Only algorithms with a public key: they need no secret that both sides have. */
const algorithms = [
  ...(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const),
  ...(["ES256", "ES384", "ES512", "EdDSA"] as const),
] as const;

const claim = <const Given extends { isRequired?: true; default?: string }>(given: Given, description: string) =>
  text({ minLength: 1, maxLength: 256, ...given }, description);

const issuer = group(
  {
    issuer: url(
      { isRequired: true },
      "Its URL, exactly as in its discovery document and its tokens; `https`, except on loopback.",
    ),
    name: text(
      { minLength: 1, maxLength: 100, absent: "the host of its URL" },
      "What people read on the button that signs in: `Acme login`.",
    ),
    client_id: text(
      { minLength: 1, maxLength: 512, absent: "nobody signs in through it" },
      "Sluice's client ID at this issuer.",
    ),
    client_secret: text(
      { minLength: 1, maxLength: 4096, writeOnly: true },
      `The client's secret, from the environment: \`"\${OIDC_CLIENT_SECRET}"\`.`,
    ),
    scopes: list(
      text({ pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,256}$", patternErrorMessage: "must be a scope of OAuth" }, ""),
      { minItems: 1, maxItems: 32, uniqueItems: true, default: ["openid", "profile", "email", "offline_access"] },
      "Scopes that a sign-in requests. Without `offline_access`, Sluice cannot ask most issuers again, and a sign-in lasts 24 hours.",
    ),
    parameters: mapping(
      text({ maxLength: 1024 }, ""),
      "^[a-z_]{1,64}$",
      {
        "x-key": "must be the name of a parameter: lowercase letters and '_', at most 64",
        maxProperties: 16,
        default: {},
      },
      "Further parameters of the authorization request, such as `access_type: offline` for Google.",
    ),
    audiences: list(
      text({ minLength: 1, maxLength: 512 }, ""),
      { maxItems: 32, uniqueItems: true, default: [] },
      "Audiences (`aud`) of its access tokens that callers may send in place of a key. Never a client ID. Without any, no token is accepted.",
    ),
    algorithms: list(
      choice(algorithms, {}, ""),
      { minItems: 1, maxItems: algorithms.length, uniqueItems: true, default: ["RS256", "PS256", "ES256", "EdDSA"] },
      `Accepted signature algorithms: any of ${algorithms.map((one) => `\`${one}\``).join(", ")}.`,
    ),
    subject: list(
      claim({}, ""),
      { minItems: 1, maxItems: 4, uniqueItems: true, default: ["sub"] },
      "The claims that together identify a person. For Entra ID `[tid, oid]`.",
    ),
    groups_claim: claim({ default: "groups" }, "The claim with a person's groups."),
  },
  "An issuer of OpenID Connect.",
);

const rule = group(
  {
    issuer: url({ absent: "the only one" }, "The issuer of the claim. Needed if there are several issuers."),
    claim: claim(
      { isRequired: true },
      "The name of the claim, or a path with dots (`realm_access.roles`). `email` counts only if the issuer has verified it; upper and lower case are the same.",
    ),
    has: text({ minLength: 1, maxLength: 500 }, "Matches if the claim is a list that has this text."),
    is: text({ minLength: 1, maxLength: 500 }, "Matches if the claim is this text."),
    role: choice(
      personRoles,
      { isRequired: true },
      "`member` or `organization-admin` of `organization`; or `viewer` or `admin` of the service.",
    ),
    organization: text({ minLength: 1, maxLength: 100 }, "Slug or ID of the organization."),
    team: text({ minLength: 1, maxLength: 200 }, "Name or ID of a team of the organization."),
    scopes: list(
      choice(scopes, {}, ""),
      { minItems: 1, maxItems: scopes.length, uniqueItems: true, absent: "all three" },
      "The most that tokens and keys may do there.",
    ),
    models: list(
      text({ minLength: 1, maxLength: 256 }, ""),
      { minItems: 1, maxItems: 1000, uniqueItems: true, absent: "every model" },
      "The only models that they may use.",
    ),
    kind: choice(personKinds, { default: "person" }, "`service` marks a workload."),
  },
  "Gives a role to everybody with the claim. In one organization, the first rule that matches counts.",
);

export const identity = group(
  {
    service_url: url(
      {},
      "The URL that clients call, such as `https://sluice.example`; `https`, except on loopback. Needed for sign-ins.",
    ),
    console_url: url(
      {},
      "The URL of the console, which listens on `SLUICE_CONSOLE_PORT`; `https`, except on loopback.",
    ),
    issuers: list(
      issuer,
      { maxItems: 16, default: [] },
      "The issuers that Sluice trusts. Without any, only operators can sign in to the console.",
    ),
    rules: list(
      rule,
      { maxItems: 1000, default: [] },
      "Rules that say who gets which role; the first that matches counts.",
    ),
    groups_max_age_h: whole(
      { minimum: 0, maximum: 720, default: 24 },
      "How long a person's last groups count when an answer has none.",
    ),
    keys_of_leavers: choice(
      ["revoke", "keep"],
      { default: "revoke" },
      "When a membership ends: `revoke` stops the person's keys, which work again if it is regained; `keep` stops only tokens.",
    ),
    session_idle_h: whole(
      { minimum: 1, maximum: 720, default: 8 },
      "How many hours a session of the console lasts without use.",
    ),
    session_max_h: whole({ minimum: 1, maximum: 720, default: 24 }, "How many hours a session lasts in all."),
    confirmed_max_days: whole(
      { minimum: 1, maximum: 365, default: 30 },
      "How many days a person's keys work after the issuer last confirmed the person.",
    ),
    claude_code_settings: flag(
      { default: false },
      "Whether Claude Code that signs in here takes its models from the catalog ([clients.md](clients.md#claude-code)).",
    ),
  },
  "Who people are: [identity.md](identity.md). Needs `SLUICE_SECRET_KEY`.",
);
