/**
 * Divides commands into batches: a batch names a request once, so commands of one request are sent one after another,
 * in order. Pure.
 */
import type { Command, LedgerAnswer } from "../../core/store/ledger.ts";

/** All answers in the order of the commands. */
export async function inWaves(
  commands: readonly Command[],
  batch: (commands: readonly Command[]) => Promise<LedgerAnswer[]>,
): Promise<LedgerAnswer[]> {
  const answers = new Array<LedgerAnswer>(commands.length);
  for (const wave of waves(commands)) {
    const some = await batch(wave.map((position) => commands[position]!));
    for (const [index, position] of wave.entries()) answers[position] = some[index]!;
  }
  return answers;
}

/**
 * The positions of the commands in groups, none of which names a request twice. The commands of one request keep their
 * order.
 */
export function waves(commands: readonly Command[]): number[][] {
  const depths = new Map<string, number>();
  const groups: number[][] = [];
  for (const [position, { requestId }] of commands.entries()) {
    const depth = depths.get(requestId) ?? 0;
    depths.set(requestId, depth + 1);
    const group = groups[depth];
    if (group) group.push(position);
    else groups.push([position]);
  }
  return groups;
}
