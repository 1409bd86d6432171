/** The settings of OpenID Connect issuers, and of the rules by which their users get memberships. */
import { scopes } from "../../core/store/directory.ts";
import { personKinds, personRoles } from "../../core/store/people.ts";
import { choice, flag, group, list, mapping, text, whole } from "./row.ts";

const url = <const Given extends { isRequired?: true; absent?: string }>(given: Given, description: string) =>
  text({ minLength: 1, maxLength: 2048, ...given }, description);

/**
 * The algorithms with which tokens may be signed: only those with a public key, because they need no secret that both
 * sides share.
 */
const algorithms = [
  ...(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const),
  ...(["ES256", "ES384", "ES512", "EdDSA"] as const),
] as const;

const claim = <const Given extends { isRequired?: true; default?: string }>(given: Given, description: string) =>
  text({ minLength: 1, maxLength: 256, ...given }, description);

const issuer = group(
  {
    issuer: url({ isRequired: true }, "Its URL, exactly as in its tokens; `https`, except on loopback."),
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
      "Scopes that a sign-in requests. Without `offline_access`, most sign-ins last 24 hours.",
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
      "Audiences (`aud`) of its access tokens that work [as keys](identity.md#tokens-of-an-issuer-as-keys); never a client ID.",
    ),
    algorithms: list(
      choice(algorithms, {}, ""),
      { minItems: 1, maxItems: algorithms.length, uniqueItems: true, default: ["RS256", "PS256", "ES256", "EdDSA"] },
      `Accepted signature algorithms: any of ${algorithms.map((one) => `\`${one}\``).join(", ")}.`,
    ),
    subject: list(
      claim({}, ""),
      { minItems: 1, maxItems: 4, uniqueItems: true, default: ["sub"] },
      "The claims that together identify a person.",
    ),
    groups_claim: claim({ default: "groups" }, "The claim with a person's groups."),
  },
  "An issuer of OpenID Connect.",
);

const rule = group(
  {
    issuer: url({ absent: "the only one" }, "The issuer of the claim."),
    claim: claim({ isRequired: true }, "The [claim](identity.md#rules), or a path with dots (`realm_access.roles`)."),
    has: text({ minLength: 1, maxLength: 500 }, "Matches if the claim is a list that has this text."),
    is: text({ minLength: 1, maxLength: 500 }, "Matches if the claim is this text."),
    role: choice(personRoles, { isRequired: true }, "The first two in `organization`, the others of the service."),
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
    console_url: url({}, "The URL of the console; `https`, except on loopback."),
    issuers: list(issuer, { maxItems: 16, default: [] }, "The issuers that Sluice trusts."),
    rules: list(rule, { maxItems: 1000, default: [] }, "Who gets which role; the first rule that matches counts."),
    groups_max_age_h: whole(
      { minimum: 0, maximum: 720, default: 24 },
      "How many hours a person's last groups count when an answer has none.",
    ),
    keys_of_leavers: choice(
      ["revoke", "keep"],
      { default: "revoke" },
      "When a membership ends, `revoke` stops the person's keys until it is regained, `keep` only tokens.",
    ),
    session_idle_h: whole(
      { minimum: 1, maximum: 720, default: 8 },
      "How many hours a console session lasts without use.",
    ),
    session_max_h: whole({ minimum: 1, maximum: 720, default: 24 }, "How many hours a console session lasts in all."),
    confirmed_max_days: whole(
      { minimum: 1, maximum: 365, default: 30 },
      "How many days a person's keys work after the issuer's last confirmation.",
    ),
    claude_code_settings: flag(
      { default: false },
      "Whether a signed-in [Claude Code](clients.md#claude-code) takes its models from the catalog.",
    ),
  },
  "Who people are: [identity.md](identity.md). Needs `SLUICE_SECRET_KEY`.",
);
