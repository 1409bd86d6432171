/** `sluice person try`: the person and rights that this machine's settings give to a token or an e-mail address. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Claims, Identity, Issuer, Rule } from "../../core/auth/identity.ts";
import { verifiedAssertion } from "../../features/identity/assertions.ts";
import { issuerClients } from "../../features/identity/issuer-clients.ts";
import { judged, subjectIn } from "../../features/identity/rules.ts";
import type { Facts } from "../management/command.ts";
import { type JsonFlag, jsonOption, printAnswer } from "./option.ts";
import type { CommandContext } from "./services.ts";
import { facts } from "./table.ts";

const token_bytes_max = 64 * 1024;

interface Options extends JsonFlag {
  issuer?: string;
  group: string[];
}

export function addPersonTryCommand(group: Command, { services }: CommandContext): void {
  group
    .command("try")
    .description("show what the identity settings here would give a token or an e-mail address; changes nothing")
    .argument("<who>", "an e-mail address, or the file of a token (- for standard input)")
    .option("--issuer <url>", "with an e-mail address: the issuer that verified it, where there are several")
    .option("--group <group>", "with an e-mail address: a group; repeatable", (one, all: string[]) => [...all, one], [])
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Examples:
  $ sluice person try ann@example.com --group research
  $ sluice person try - <token.jwt`,
    )
    .action(async (who: string, options: Options) => {
      const { identity } = await services.configuration();
      if (!identity) throw new Error("identity is not configured: add 'identity:' to sluice.yaml (docs/identity.md)");
      const { issuer, claims } = /^[^\s/]+@[^\s/]+$/.test(who)
        ? byEmail(identity, who, options)
        : await byToken(identity, tokenIn(who), services.now_ms);
      const found = resultOf(identity, issuer, claims);
      printAnswer(services.terminal, options, found, facts(services.terminal, factsOf(found)));
    });
}

function byEmail(identity: Identity, email: string, options: Options): { issuer: Issuer; claims: Claims } {
  const all = identity.issuers.filter(({ issuer }) => options.issuer === undefined || issuer === options.issuer);
  if (all.length !== 1)
    throw new Error(`specify one issuer with --issuer: ${identity.issuers.map(({ issuer }) => issuer).join(", ")}`);
  const issuer = all[0]!;
  return { issuer, claims: { email, email_verified: true, [issuer.groupsClaim]: options.group } };
}

/** Verifies the token in the same way as the server verifies a caller's token. */
async function byToken(identity: Identity, token: string, now_ms: () => number) {
  const issuers = issuerClients({ now_ms: () => performance.now() });
  return verifiedAssertion({ identity: () => identity, issuers, now_ms }, token);
}

function tokenIn(file: string): string {
  const text = readFileSync(file === "-" ? 0 : file, "utf8").trim();
  if (text.length > token_bytes_max) throw new Error(`${file} is too long for a token`);
  return text;
}

function resultOf(identity: Identity, issuer: Issuer, claims: Claims) {
  const { rules, kind, memberships, calling } = judged(identity, issuer, claims);
  return {
    issuer: issuer.issuer,
    subject: subjectIn(issuer, claims),
    kind,
    rules: rules.map((rule) => identity.rules.indexOf(rule) + 1),
    memberships,
    calls_in: calling?.organization ?? null,
    matched: rules.map(ruleWords),
  };
}

const ruleWords = ({ claim, wanted }: Rule) =>
  "has" in wanted ? `${claim} has ${wanted.has}` : `${claim} is ${wanted.is}`;

function factsOf(found: ReturnType<typeof resultOf>): Facts {
  const { issuer, subject, kind, rules, memberships, calls_in, matched } = found;
  return [
    ["issuer", issuer],
    ["subject", subject],
    ["kind", kind],
    ...rules.map((number, at) => [`rule ${number}`, matched[at]!] as const),
    ...(memberships.length === 0 ? ([["memberships", "none: no rule matches"]] as const) : []),
    ...memberships.map(
      ({ role, organization, team, scopes, models }) =>
        [
          "membership",
          organization === null
            ? `${role} of the service`
            : `${role} in ${organization}${team ? `, team ${team}` : ""}; ${scopes.join(" ")}; ${models?.join(" ") ?? "every model"}`,
        ] as const,
    ),
    ["a token calls", calls_in === null ? "not at all: it gets 401" : `in ${calls_in}`],
  ];
}
