// Mutations of idempotency keys (docs/protocols.md, Repeating a request): each takes out one thing that must hold of them.

import type { Admit, Settle } from "../../src/core/store/ledger.ts";
import type { Mutation } from "./mutations.ts";

const rule = "repeats";

/** A node whose commands of one verb do not say that a key can ask for the answer again. */
const withoutKey =
  (verb: "admit" | "settle"): NonNullable<Mutation["defects"]["ledger"]> =>
  (ledger) => ({
    ...ledger,
    run: (commands) =>
      ledger.run(
        commands.map((command) => {
          if (command.verb !== verb) return command;
          const { isRepeatable: _, ...rest } = command as Admit | Settle;
          return rest;
        }),
      ),
  });

export const keptMutations: Readonly<Record<string, Mutation>> = {
  "a key is taken by each that asks": {
    rule,
    defects: {
      kept: (answers) => ({
        begin: (kept) => answers.begin({ ...kept, claim: { key: kept.requestId, body: kept.claim!.body } }),
      }),
    },
    seenAs: ["key"],
  },
  "a recovery charges what a key can ask for again": {
    rule,
    defects: { ledger: withoutKey("admit") },
    seenAs: ["key", "repeat"],
  },
  "a late settlement charges what a key can ask for again": {
    rule,
    defects: { ledger: withoutKey("settle") },
    seenAs: ["key"],
  },
  "a kept answer ends with its client": { rule, defects: { isNeverDetached: true }, seenAs: ["detached"] },
  "a run is settled before its log is whole": {
    rule,
    under: ["crash"],
    defects: { endsLogLate: true },
    seenAs: ["repeat"],
  },
  "a key stays taken after the failure of its node was read": {
    rule,
    defects: { kept: () => ({ abandon: async () => true }) },
    seenAs: ["repeat", "available"],
  },
  "a background response that failed always gives up its key": {
    rule,
    defects: {
      kept: (answers) => ({
        end: (requestId, end) =>
          answers.end(requestId, { ...end, freesClaim: end.response?.includes('"status":"failed"') ?? false }),
      }),
    },
    seenAs: ["key"],
  },
  "who has lost a claim goes on": {
    rule,
    under: ["freeze"],
    defects: {
      kept: (answers) => ({
        find: async (requestId) =>
          (await answers.find(requestId)) ?? {
            ...{ requestId, organizationId: "org_1", state: "open", body: null },
            ...{ responseId: null, response: null, age_ms: 0 },
          },
        respond: async (...response) => {
          await answers.respond(...response);
          return true;
        },
      }),
    },
    seenAs: ["key", "available", "repeat"],
  },
};
