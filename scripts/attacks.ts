// `npm run attacks -- [WORD …]`: runs each attack of test/attacks against a node of its own, or only the attacks whose
// names contain one of the words. Prints the cost and the effect of each attack. Exits with 1 if an attack exceeded its
// bounds.

import Table from "cli-table3";
import { attacks } from "../test/attacks/all.ts";
import type { Attack, Measured } from "../test/attacks/attack.ts";
import { mibOf, startAttackedNode } from "../test/attacks/node.ts";

async function main(words: string[]): Promise<number> {
  const chosen = attacks.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) {
    console.error("no attack has such a name");
    return 2;
  }
  const table = new Table({
    head: ["attack", "sent", "unpacked", "answers", "step ms", "livez ms", "cpu ms", "grew MiB", "verdict"],
    style: { head: [], border: [] },
  });
  let broken = 0;
  for (const attack of chosen) {
    const measured = await measuredAlone(attack);
    if (measured.broken.length > 0) broken += 1;
    table.push(rowOf(attack, measured));
    console.log(`${attack.name}: ${measured.broken.join("; ") || "held"} (${measured.step_ms.toFixed(0)} ms)`);
  }
  console.log(table.toString());
  console.log(`${chosen.length - broken} held, ${broken} broke`);
  return broken > 0 ? 1 : 0;
}

/** Runs each attack on a new node, so that the memory and compiled code from other attacks do not affect its result. */
async function measuredAlone(attack: Attack): Promise<Measured> {
  const node = await startAttackedNode(attack.node);
  try {
    return await node.measure(attack);
  } finally {
    await node.stop();
  }
}

function rowOf({ name }: Attack, { sent, bounds, ...measured }: Measured): string[] {
  const answers = [...Map.groupBy(sent.answers, (answer) => answer)].map(
    ([answer, all]) => `${all.length} × ${answer}`,
  );
  return [
    name,
    `${mibOf(sent.bytes)} MiB`,
    `${mibOf(sent.unpackedBytes)} MiB`,
    answers.join(", "),
    `${measured.step_ms.toFixed(0)} of ${bounds.step_ms}`,
    measured.livez_ms.toFixed(0),
    measured.cpu_ms.toFixed(0),
    `${mibOf(measured.growth_bytes)} of ${mibOf(bounds.growth_bytes)}`,
    measured.broken.length === 0 ? "held" : "BROKE",
  ];
}

process.exit(await main(process.argv.slice(2)));
