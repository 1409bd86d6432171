/** What single keys may use, and what new keys get. An `organization-admin` sets it in the own organization. */
import Type from "typebox";
import { nullable } from "../../../protocol/shapes/contract.ts";
import { budgetedKeyJson, keyDefaultJson, readBudgetedKey, readKeyDefault } from "../budget-records.ts";
import { BudgetedKeyRecord, KeyDefaultRecord, limitChanges } from "../budget-shapes.ts";
import { exampleIds } from "../examples.ts";
import { type ManagementOperation, managementOperation, words } from "../operation.ts";
import { exampleKey } from "./keys.ts";

const limits = {
  session: 20_000_000,
  week: null,
  month: null,
  requests_per_minute: 60,
  tokens_per_minute: null,
  concurrent_requests: 4,
};
const exampleBudget: Type.Static<typeof BudgetedKeyRecord> = {
  ...exampleKey,
  team: { id: exampleIds.team, name: "research" },
  limits,
};
const exampleDefault = { organization_id: exampleIds.organization, organization: "acme", limits, version: 3 };

const seen = ["viewer", "organization-admin"] as const;
const also = ["organization-admin"] as const;
const key = { tag: "Keys", id: "id", path: "/keys/{id}/budget", answers: BudgetedKeyRecord } as const;
const byDefault = { tag: "Keys", id: "organization", path: "/organizations/{id}/key-limits" } as const;
const changes = () => limitChanges("What is left out stays; null takes a limit away.");

export const budgetOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ ...key, verb: "findKeyBudget", method: "get", kind: "reading", also: seen },
    summary: "Show the team and the limits of a key",
    description: "With all else of the key, but never its secret.",
    example: { id: exampleIds.key, answer: exampleBudget },
    encode: budgetedKeyJson,
    read: readBudgetedKey,
  }),
  managementOperation({
    ...{ ...key, verb: "updateKeyBudget", method: "patch", kind: "change", also },
    summary: "Change the team or the limits of a key",
    description: "They count at once, for running requests too. What runs goes on counting where it was admitted.",
    takes: Type.Object({
      team: Type.Optional(nullable(words("ID or name of a team of its organization. Null: none."))),
      limits: Type.Optional(nullable(changes())),
    }),
    example: { id: exampleIds.key, takes: { limits: { session: 20_000_000 } }, answer: exampleBudget },
    encode: budgetedKeyJson,
    read: readBudgetedKey,
  }),
  managementOperation({
    ...{ ...byDefault, verb: "findKeyDefault", method: "get", kind: "reading", also: seen },
    summary: "Show the limits that new keys get",
    description: "Unless their team says otherwise.",
    answers: KeyDefaultRecord,
    example: { id: "acme", answer: exampleDefault },
    encode: keyDefaultJson,
    read: readKeyDefault,
  }),
  managementOperation({
    ...{ ...byDefault, verb: "updateKeyDefault", method: "patch", kind: "change", also },
    summary: "Change the limits that new keys get",
    description: "Keys that exist keep theirs.",
    takes: Type.Object({ limits: changes() }),
    answers: KeyDefaultRecord,
    example: { id: "acme", takes: { limits: { session: 20_000_000 } }, answer: exampleDefault },
    encode: keyDefaultJson,
    read: readKeyDefault,
  }),
];
