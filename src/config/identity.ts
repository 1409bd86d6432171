/** Checks the section `identity` of sluice.yaml beyond its schema, and makes settings of it. */
import type { Identity, Issuer, Rule } from "../core/auth/identity.ts";
import { scopes } from "../core/store/directory.ts";
import type { FoundProblems } from "./problem.ts";
import { identity as rows } from "./settings/identity.ts";
import { filled, type Group, type Row, type Written } from "./settings/row.ts";

export type IdentitySection = Written<typeof rows.properties>;
type IssuerEntry = NonNullable<IdentitySection["issuers"]>[number];
type RuleEntry = NonNullable<IdentitySection["rules"]>[number];

/** Yields the path of each problem below `identity`, and its message. */
export function* brokenIdentity(section: IdentitySection): FoundProblems {
  for (const name of ["service_url", "console_url"] as const) {
    const problem = section[name] === undefined ? null : whyNoOrigin(section[name]);
    if (problem !== null) yield [[name], problem];
  }
  const { issuers = [], rules = [], service_url } = section;
  const clients = issuers.flatMap(({ client_id }) => client_id ?? []);
  for (const [index, entry] of issuers.entries())
    for (const [path, message] of brokenIssuer(entry, clients)) yield [["issuers", index, ...path], message];
  yield* repeatedIssuers(issuers);
  if (clients.length > 0 && service_url === undefined)
    yield [["service_url"], "is missing; an issuer with client_id sends browsers back to it after a sign-in"];
  const names = issuers.map(({ issuer }) => issuer);
  for (const [index, entry] of rules.entries())
    for (const [path, message] of brokenRule(entry, names)) yield [["rules", index, ...path], message];
}

function* repeatedIssuers(issuers: IssuerEntry[]): FoundProblems {
  for (const [index, { issuer }] of issuers.entries()) {
    const first = issuers.findIndex((one) => one.issuer === issuer);
    if (first < index) yield [["issuers", index, "issuer"], `is already the issuer of issuers[${first}]`];
  }
}

function* brokenIssuer(entry: IssuerEntry, clients: string[]): FoundProblems {
  const problem = whyUnsafe(entry.issuer);
  if (problem !== null) yield [["issuer"], problem];
  if (entry.client_secret !== undefined && entry.client_id === undefined)
    yield [["client_secret"], "is of no use without client_id"];
  for (const [index, audience] of (entry.audiences ?? []).entries())
    if (clients.includes(audience))
      yield [
        ["audiences", index],
        "is a client id: ID tokens, which are for sign-ins alone, would pass as callers; register an API at the issuer, and name its audience",
      ];
}

function* brokenRule(rule: RuleEntry, issuers: string[]): FoundProblems {
  const { issuer, claim, has, is, role, organization, team, scopes: most, models, kind } = rule;
  if (issuers.length === 0) yield [[], "is for people, who come in by an issuer, and there is none"];
  if (issuer === undefined && issuers.length > 1)
    yield [["issuer"], "is missing; there are several issuers, and a claim of one means nothing at another"];
  if (issuer !== undefined && issuers.length > 0 && !issuers.includes(issuer))
    yield [["issuer"], `names no issuer of this file; it has ${issuers.join(", ")}`];
  if ((has === undefined) === (is === undefined))
    yield [[], "needs one of has (for a claim that is a list) and is (for one that is text)"];
  if (claim === "email" && has !== undefined) yield [["has"], "is for lists, and email is text; use is"];
  const isOfService = role === "viewer" || role === "admin";
  if (isOfService && organization !== undefined)
    yield [
      ["organization"],
      `is of no use: the role ${role} is for the whole service; choose organization-admin or member`,
    ];
  if (!isOfService && organization === undefined)
    yield [["organization"], `is missing; the role ${role} is a role in an organization`];
  if (isOfService && kind === "service")
    yield [["kind"], "is for callers, and callers never administer; use an operator token for a machine that does"];
  for (const [name, value] of Object.entries({ team, scopes: most, models }))
    if (isOfService && value !== undefined) yield [[name], `is of no use with the role ${role}`];
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** The reason why answers from this URL could be forged on the way, or why it is no URL; null if it is safe. */
function whyUnsafe(text: string): string | null {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text) || /[\s\\?#]/.test(text))
    return "must be a URL without query and fragment, such as https://login.example";
  const url = new URL(text);
  if (url.username || url.password) return "must not contain a user name or password";
  if (url.protocol === "http:" && !loopback.test(url.hostname))
    return "must begin with https://, because it is not on this machine";
  return null;
}

function whyNoOrigin(text: string): string | null {
  return (
    whyUnsafe(text) ?? (new URL(text).pathname === "/" ? null : "must have no path, such as https://sluice.example")
  );
}

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

export function identityOf(section: IdentitySection): Identity {
  const settings = filled(rows.properties, section);
  const originOf = (url: string | undefined) => (url === undefined ? null : new URL(url).origin);
  return {
    serviceUrl: originOf(settings.service_url),
    consoleUrl: originOf(settings.console_url),
    issuers: settings.issuers.map(issuerOf),
    rules: settings.rules.map(ruleOf),
    groupsMaxAge_ms: settings.groups_max_age_h * hour_ms,
    keysOfLeavers: settings.keys_of_leavers,
    sessionIdle_ms: settings.session_idle_h * hour_ms,
    sessionMax_ms: settings.session_max_h * hour_ms,
    confirmedMax_ms: settings.confirmed_max_days * day_ms,
    claudeCodeSettings: settings.claude_code_settings,
  };
}

/** The rows (declarations) of the settings in a list's items, for their defaults. */
const itemsOf = <Item>(row: Row<Item[]>) => (row.items as Group).properties;

function issuerOf(entry: IssuerEntry): Issuer {
  const all = { ...filled(itemsOf(rows.properties.issuers)), ...entry } as Required<IssuerEntry>;
  return {
    issuer: all.issuer,
    name: all.name ?? new URL(all.issuer).host,
    clientId: all.client_id ?? null,
    clientSecret: all.client_secret ?? null,
    scopes: all.scopes,
    parameters: all.parameters,
    audiences: all.audiences,
    algorithms: all.algorithms,
    subject: all.subject,
    groupsClaim: all.groups_claim,
  };
}

function ruleOf(entry: RuleEntry): Rule {
  const { issuer = null, claim, has, is = "", role, kind = "person", organization = null, team = null } = entry;
  return {
    issuer,
    claim,
    wanted: has === undefined ? { is } : { has },
    role,
    kind,
    organization,
    team,
    scopes: entry.scopes ?? scopes,
    models: entry.models ?? null,
  };
}
