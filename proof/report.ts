// Writes the text that a run prints at its end.

import type { Verdict } from "./judge.ts";
import { type Known, newFindings } from "./known.ts";
import type { Outcome } from "./session.ts";

const verdicts: readonly Verdict[] = [
  "lost",
  "doubled",
  "overspent",
  "leaked",
  "charged without delivery",
  "unexplained",
];

export function summed(outcomes: readonly Outcome[]): Outcome {
  const injuries = new Map<string, number>();
  for (const outcome of outcomes)
    for (const [name, count] of outcome.injuries) injuries.set(name, (injuries.get(name) ?? 0) + count);
  const total = (of: (outcome: Outcome) => number) => outcomes.reduce((sum, outcome) => sum + of(outcome), 0);
  return {
    injuries,
    requests: total(({ requests }) => requests),
    answered: total(({ answered }) => answered),
    refused: total(({ refused }) => refused),
    delivered_tokens: total(({ delivered_tokens }) => delivered_tokens),
    uncounted_tokens: total(({ uncounted_tokens }) => uncounted_tokens),
    findings: outcomes.flatMap(({ findings }) => findings),
  };
}

export function printed(outcome: Outcome, known: readonly Known[]): string {
  const faults = [...outcome.injuries].sort().map(([name, count]) => `  ${count} × ${name}`);
  const rows = verdicts.map((verdict) => {
    const found = outcome.findings.filter((finding) => finding.verdict === verdict);
    const tokens = found.reduce((sum, finding) => sum + finding.tokens, 0);
    return `  ${verdict.padEnd(26)}${`${found.length}`.padStart(6)}${`${tokens}`.padStart(10)} tokens`;
  });
  // If no limit refused a request, the run does not show whether a limit can be exceeded.
  const unlimited =
    outcome.refused === 0 ? ["", "No limit refused anything: this run says nothing of overspending."] : [];
  const fresh = newFindings(outcome.findings, known).length;
  return [
    "",
    ...faults,
    "",
    `${outcome.requests} requests, ${outcome.answered} answered, ${outcome.refused} refused by a limit`,
    `${outcome.delivered_tokens} tokens delivered, ${outcome.uncounted_tokens} of them not in the book`,
    "",
    ...rows,
    "",
    `${outcome.findings.length} findings, ${fresh} of them not known`,
    ...unlimited,
  ].join("\n");
}
