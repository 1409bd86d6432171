// The report of a violation in a history (a simulated run): the rule, the fact that broke it, the command that replays
// it, and a trace of the events.

import { rules } from "./rules.ts";
import { keepInWords, type Shortest } from "./shrink.ts";

const trace_lines_max = 120;

export function reportOf({ history, keep }: Shortest): string {
  const { seed, violation } = history;
  const { rule, sentence, trace } = violation;
  const told = trace.slice(-trace_lines_max);
  const cut = trace.length > told.length ? [`   … ${trace.length - told.length} lines before these`] : [];
  return [
    `seed ${seed} breaks the rule "${rules[rule]}":`,
    `  ${sentence}`,
    `again: npm run histories -- --seed ${seed} --keep "${keepInWords(keep)}"`,
    "what happened:",
    ...cut,
    ...told,
  ].join("\n");
}
