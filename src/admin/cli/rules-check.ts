/** The findings of `sluice doctor` about the rules of `identity`: whether the organizations and teams that they name exist. */
import type { Rule } from "../../core/auth/identity.ts";
import { Fault } from "../../core/inference/fault.ts";
import { shellWord } from "../management/shell-word.ts";
import type { Management } from "../management/verbs.ts";
import { Warning } from "./warning.ts";

const listed_max = 5;

/**
 * Checks the rules, and returns the result in one sentence. Throws a Warning that names the missing organizations and
 * teams, and says what to do.
 */
export async function rulesSay(rules: readonly Rule[], manage: Management): Promise<string> {
  const missing: string[] = [];
  const organizations = new Set(rules.flatMap(({ organization }) => organization ?? []));
  for (const organization of organizations) {
    const own = rules.filter((rule) => rule.organization === organization);
    if (await isThere(manage.findOrganization({ organization })))
      missing.push(...(await missingTeams({ rules, own, organization }, manage)));
    else
      missing.push(
        `${giving(rules, own)} there is no organization '${organization}': sluice org create ${shellWord(organization)}`,
      );
  }
  if (missing.length === 0)
    return `${rules.length} ${rules.length === 1 ? "rule" : "rules"}; their organizations and teams are there`;
  const more = missing.length - listed_max;
  throw new Warning([...missing.slice(0, listed_max), ...(more > 0 ? [`and ${more} more`] : [])].join("; "));
}

interface RulesInView {
  rules: readonly Rule[];
  /** The rules that name the organization. */
  own: readonly Rule[];
  organization: string;
}

async function missingTeams({ rules, own, organization }: RulesInView, manage: Management): Promise<string[]> {
  const missing: string[] = [];
  for (const team of new Set(own.flatMap((rule) => rule.team ?? []))) {
    if (await isThere(manage.findTeam({ team, organization }))) continue;
    const ofTeam = own.filter((rule) => rule.team === team);
    const create = `sluice team create --org ${shellWord(organization)} --name ${shellWord(team)}`;
    missing.push(`${giving(rules, ofTeam)} ${organization} has no team '${team}': ${create}`);
  }
  return missing;
}

/** Names `some` of the rules by their numbers in the file. */
function giving(rules: readonly Rule[], some: readonly Rule[]): string {
  const numbers = some.map((rule) => rules.indexOf(rule) + 1);
  return numbers.length === 1
    ? `rule ${numbers[0]} gives nothing while`
    : `rules ${numbers.join(", ")} give nothing while`;
}

async function isThere(found: Promise<unknown>): Promise<boolean> {
  try {
    await found;
    return true;
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === "resource_not_found") return false;
    throw thrown;
  }
}
