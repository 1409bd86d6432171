/** Runs the cases of a suite, and returns for each rule whether it was kept, was broken, or could not be checked. */
import type { Ask, Exchange } from "./exchange.ts";
import type { Case, Suite } from "./rule.ts";

export interface Finding {
  protocol: Suite["protocol"];
  case: string;
  /** The ID of the rule. `status` is the rule about the status of the response. */
  rule: string;
  says: string;
  source: string;
  result: "kept" | "broken" | "unchecked";
  /** The mistake, or the reason why the rule could not be checked. Empty for a rule that was kept. */
  found: string;
  /** The request and its response. Null: no request was sent. */
  exchange: Exchange | null;
}

export async function examine(suite: Suite, ask: Ask, hasKey: boolean): Promise<Finding[]> {
  const findings: Finding[] = [];
  let absence: string | null = null;
  for (const [index, one] of suite.cases.entries()) {
    if (absence === null && one.request.anonymous && !hasKey) {
      findings.push(...unchecked(suite, one, null, "no key was given, so the server may need none"));
      continue;
    }
    if (absence !== null) {
      findings.push(...unchecked(suite, one, null, absence));
      continue;
    }
    const exchange = await ask(one.request);
    if (index === 0) absence = absenceOf(exchange);
    findings.push(...(absence === null ? judged(suite, one, exchange) : unchecked(suite, one, exchange, absence)));
  }
  return findings;
}

/** The reason why the protocol cannot be examined; null if it can. */
function absenceOf({ status, problem }: Exchange): string | null {
  if (status === null) return `there is no answer: ${problem}`;
  if ([404, 405, 501].includes(status)) return `the protocol isn't served, or the model isn't there (${status})`;
  if (status === 401 || status === 403) return `the key is not accepted (${status})`;
  return null;
}

/** Checks one response by the rules of its case. Pure. */
export function judged(suite: Suite, one: Case, exchange: Exchange): Finding[] {
  const { status, problem } = exchange;
  const lacks = one.needs !== undefined && status !== null && status >= 400 && status < 500;
  if (lacks) return unchecked(suite, one, exchange, `the model or the server lacks ${one.needs} (${status})`);
  const says = `the status is ${one.status.join(" or ")}`;
  const found = problem ?? (one.status.includes(status ?? 0) ? "" : `it is ${status}`);
  const ofStatus = finding(suite, one, exchange, { id: "status", says, found });
  if (found !== "") {
    const rest = one.status.includes(200) ? "the request was not answered" : "the request was not refused";
    return [ofStatus, ...unchecked(suite, one, exchange, rest)];
  }
  return [
    ofStatus,
    ...one.rules.map((rule) => {
      const broken = rule.broken(exchange) ?? "";
      return finding(suite, one, exchange, { id: rule.id, says: rule.says, found: broken });
    }),
  ];
}

function finding(
  { protocol, source }: Suite,
  one: Case,
  exchange: Exchange,
  rule: { id: string; says: string; found: string },
): Finding {
  const { id, says, found } = rule;
  const result = found === "" ? "kept" : "broken";
  return { protocol, case: one.name, rule: id, says, source, result, found, exchange };
}

function unchecked({ protocol, source }: Suite, one: Case, exchange: Exchange | null, found: string): Finding[] {
  return one.rules.map(({ id, says }) => ({
    protocol,
    case: one.name,
    rule: id,
    says,
    source,
    result: "unchecked",
    found,
    exchange,
  }));
}
