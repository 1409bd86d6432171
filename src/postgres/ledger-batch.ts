/** Commands of the ledger as the arguments of `usage_batch` (migration 0004). Its answers: ledger-answers.ts. */
import type { Prices } from "../inference/model.ts";
import type { Usage } from "../inference/usage.ts";
import { hexOf } from "../store/ids.ts";
import { type Command, type RequestFacts, type UsageLimits, window_units_max, windowKinds } from "../store/ledger.ts";
import { compositeArray, type Field } from "./composite.ts";

const types = ["uuid", "usage_admit_command", "usage_grow_command", "usage_checkpoint_command", "usage_settle_command"];
const parameters = [...types, "bigint"].map((type, at) => `$${at + 1}::${type}[]`);

/** Its parameters are what `encodeBatch` gives; its one row has one column, which `decodeAnswers` reads. */
export const batchCall = `select usage_batch(${parameters.join(", ")}) as answers`;

/** The same, committed durably: for a server alone, and outside of any transaction. */
export const durableBatchCall = `call usage_batch_durably(${parameters.join(", ")}, null)`;

/**
 * Organizations, admits, grows, checkpoints, settles, and limits; commands name organizations and limits by their number,
 * from 1. An id that is none throws: nothing was sent.
 */
export function encodeBatch(commands: readonly Command[]): string[] {
  const rows: Record<Command["verb"], Field[][]> = { admit: [], grow: [], checkpoint: [], settle: [] };
  const organizations = numbers();
  const limits = numbers();
  for (const [position, command] of commands.entries()) {
    const owner = organizations.of(hexOf(command.organizationId, "org_"));
    rows[command.verb].push(fieldsOf(command, position, owner, (some) => limits.of(rowOf(some))));
  }
  return [
    organizations.array(),
    ...[rows.admit, rows.grow, rows.checkpoint, rows.settle].map(compositeArray),
    limits.array(),
  ];
}

/** Commands of a batch have few organizations and plans among them: each is sent once. */
function numbers() {
  const known = new Map<string, number>();
  return {
    of(text: string): number {
      const number = known.get(text) ?? known.size + 1;
      known.set(text, number);
      return number;
    },
    array: () => `{${[...known.keys()].join(",")}}`,
  };
}

function rowOf(limits: UsageLimits): string {
  return `{${windowKinds.map((kind) => limits[kind] ?? window_units_max).join(",")}}`;
}

function fieldsOf(command: Command, position: number, owner: number, limits: (of: UsageLimits) => number): Field[] {
  const names = [position, hexOf(command.requestId, "req_"), owner];
  switch (command.verb) {
    case "admit":
      return [
        ...names,
        ...facts(command),
        limits(command.limits),
        command.limits.concurrentRequests,
        command.inputUnits,
        command.outputTokens,
        command.outputTokens_min,
        command.lease_ms,
      ];
    case "grow":
      return [...names, command.number, limits(command.limits), command.unitsTotal, command.unitsTotal_min];
    case "checkpoint":
      return [...names, command.number, ...usage(command.usage), command.lease_ms];
    case "settle":
      return [
        ...names,
        ...facts(command),
        limits(command.limits),
        ...usage(command.usage),
        command.units,
        command.outcome,
        command.stoppedBy,
        command.errorCode,
        command.route?.upstream,
        command.route?.attempts,
        command.route?.tried && JSON.stringify(command.route.tried),
        command.route && command.route.firstPart_ms !== null ? Math.round(command.route.firstPart_ms) : null,
        command.reportRejected && JSON.stringify(command.reportRejected),
      ];
  }
}

const facts = (command: RequestFacts): Field[] => [
  hexOf(command.keyId, "key_"),
  command.operation,
  command.model,
  command.stream,
  ...prices(command.prices),
];
const prices = (one: Prices): Field[] => [one.input, one.cachedInput, one.cacheWrite, one.output];
const usage = (one: Usage): Field[] => [
  one.inputTokens,
  one.cachedInputTokens,
  one.cacheWriteTokens,
  one.outputTokens,
  one.reasoningTokens,
  one.source,
];
