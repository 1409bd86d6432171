/** Whether the rules of `identity` name organizations and teams that are there: a rule of one that is not gives nothing. */
import type { Rule } from "../auth/identity.ts";
import { Fault } from "../inference/fault.ts";
import type { Management } from "../management/verbs.ts";
import { Warning } from "./warning.ts";

const told_max = 5;

/** One sentence. Throws a Warning that says which are missing, and what to do. */
export async function rulesSay(rules: readonly Rule[], manage: Management): Promise<string> {
  const missing: string[] = [];
  const organizations = new Set(rules.flatMap(({ organization }) => organization ?? []));
  for (const organization of organizations) {
    const of = rules.filter((rule) => rule.organization === organization);
    if (await isThere(manage.findOrganization({ organization })))
      missing.push(...(await missingTeams({ rules, of, organization }, manage)));
    else
      missing.push(
        `${giving(rules, of)} there is no organization '${organization}': sluice org create ${organization}`,
      );
  }
  if (missing.length === 0)
    return `${rules.length} ${rules.length === 1 ? "rule" : "rules"}; their organizations and teams are there`;
  const more = missing.length - told_max;
  throw new Warning([...missing.slice(0, told_max), ...(more > 0 ? [`and ${more} more`] : [])].join("; "));
}

interface Place {
  rules: readonly Rule[];
  /** Those of the organization. */
  of: readonly Rule[];
  organization: string;
}

async function missingTeams({ rules, of, organization }: Place, manage: Management): Promise<string[]> {
  const missing: string[] = [];
  for (const team of new Set(of.flatMap((rule) => rule.team ?? []))) {
    if (await isThere(manage.findTeam({ team, organization }))) continue;
    const own = of.filter((rule) => rule.team === team);
    const create = `sluice team create --org ${organization} --name '${team.replaceAll("'", `'\\''`)}'`;
    missing.push(`${giving(rules, own)} ${organization} has no team '${team}': ${create}`);
  }
  return missing;
}

/** The rules by their numbers in the file. */
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
