// The rules of answers that are passed on as their engine wrote them, taken out one at a time (docs/design/usage.md,
// Holds), each with the violation in which a history without it must end.

import type { Command } from "../../src/core/store/ledger.ts";
import { priceOf } from "../../src/core/usage/price.ts";
import type { Mutation } from "./mutations.ts";
import { costOf, prices } from "./prices.ts";
import type { NodeLedger } from "./wire.ts";

/** Makes a defect that changes each command on its way from the node to the store. */
const sends = (changed: (command: Command) => Command): Mutation["defects"] => ({
  ledger: (ledger: NodeLedger) => ({ ...ledger, run: (commands) => ledger.run(commands.map(changed)) }),
});

const mutationOf = (changed: (command: Command) => Command, seenAs: Mutation["seenAs"]): Mutation => ({
  rule: "docs/design/usage.md, Holds",
  defects: sends(changed),
  seenAs,
});

const isOf = (command: Command, operation: string) => "operation" in command && command.operation === operation;

export const passedMutations: Readonly<Record<string, Mutation>> = {
  "a search is not held": mutationOf(
    (command) =>
      command.verb === "admit" && isOf(command, "rerank")
        ? { ...command, inputNanos: command.inputNanos % costOf(1, prices.search) }
        : command,
    ["passed"],
  ),
  "a search is not charged": mutationOf(
    (command) =>
      command.verb === "settle" && isOf(command, "rerank")
        ? { ...command, nanos: priceOf(command.usage, prices) }
        : command,
    ["charge"],
  ),
  "a search of an answer that was not delivered is charged": mutationOf(
    (command) =>
      command.verb === "settle" && isOf(command, "rerank") && command.outcome === "failed"
        ? { ...command, nanos: command.nanos + costOf(1, prices.search) }
        : command,
    ["delivered", "charge", "refusal"],
  ),
  "a completion that comes whole holds a step of it": mutationOf(
    (command) =>
      command.verb === "admit" && isOf(command, "completions") && !command.stream
        ? { ...command, outputTokens: Math.min(command.outputTokens, 4096) }
        : command,
    ["passed"],
  ),
};
