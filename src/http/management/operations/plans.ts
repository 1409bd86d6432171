/** Plans: those of sluice.yaml to read, and those that are made here. */
import Type from "typebox";
import { nullable } from "../../../protocol/shapes/contract.ts";
import { auditShown } from "../../../store/audit-chain.ts";
import type { AuditEntry } from "../../../store/directory.ts";
import { units_max } from "../../../store/ledger.ts";
import type { KnownPlan } from "../../../store/plan.ts";
import { exampleAt } from "../examples.ts";
import {
  type ManagementOperation,
  managementOperation,
  pageParameters,
  pageRead,
  pageShown,
  words,
} from "../operation.ts";
import { planJson } from "../records.ts";
import { type AuditRecord, PlanRecord } from "../shapes.ts";
import { auditPage } from "./audit.ts";

const pro: Type.Static<typeof PlanRecord> = {
  name: "pro",
  source: "management",
  version: 1,
  changed_at: exampleAt,
  session: 1_000_000,
  week: 10_000_000,
  month: 40_000_000,
  requests_per_minute: 600,
  tokens_per_minute: null,
  concurrent_requests: 20,
};

const { name: _, source, version: __, changed_at: ___, ...were } = pro;
const changed: Type.Static<typeof AuditRecord> = {
  number: 42,
  at: exampleAt,
  actor: "operator:ann",
  address: "192.0.2.7",
  action: "plan.update",
  organization_id: null,
  subject: "pro",
  details: { source, limits: { ...were, week: 5_000_000 }, before: were },
  hash: "9f2c".repeat(16),
};

const limit = (what: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: units_max, description: `${what} Null: no limit.` })));
const limits = {
  session: limit("Micro-units in five hours."),
  week: limit("Micro-units a week."),
  month: limit("Micro-units a month."),
  requests_per_minute: limit("Requests in any 60 seconds."),
  tokens_per_minute: limit("Tokens in any 60 seconds."),
  concurrent_requests: limit("Requests at a time."),
};

const read = (plan: KnownPlan) => plan;
const seen = ["viewer", "organization-admin"] as const;
const common = { tag: "Plans", answers: PlanRecord, encode: planJson, read } as const;
const one = { ...common, id: "name" } as const;

export const planOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "listPlans", method: "get", path: "/plans", tag: "Plans", kind: "reading", also: seen },
    summary: "List plans",
    description: "All that are in force.",
    answers: Type.Object({ data: Type.Array(PlanRecord), next_cursor: nullable(Type.String()) }, { $id: "Plans" }),
    example: { answer: { data: [pro], next_cursor: null } },
    encode: (plans) => ({ data: plans.map(planJson), next_cursor: null }),
    read: ({ data }: { data: KnownPlan[] }) => data,
  }),
  managementOperation({
    ...{ ...common, verb: "createPlan", method: "post", path: "/plans", kind: "creation", also: [] },
    summary: "Create a plan",
    description: "In force on every node within a second. What is left out is not limited.",
    takes: Type.Object({ name: words("1 to 63 letters, digits, and `.`, `_`, `-`."), ...limits }),
    example: { takes: { name: "gold", session: 1_000_000, concurrent_requests: 20 }, answer: { ...pro, name: "gold" } },
  }),
  managementOperation({
    ...{ ...one, verb: "findPlan", method: "get", path: "/plans/{id}", kind: "reading", also: seen },
    summary: "Show a plan",
    description: "As it is in force.",
    example: { id: "pro", answer: pro },
  }),
  managementOperation({
    ...{ ...one, verb: "updatePlan", method: "put", path: "/plans/{id}/limits", kind: "change", also: [] },
    summary: "Change the limits of a plan",
    description:
      "What is left out stays. It counts on every node within a second, for running requests too. A plan of sluice.yaml is changed there.",
    takes: Type.Object(limits),
    example: { id: "pro", takes: { week: 5_000_000 }, answer: { ...pro, week: 5_000_000, version: 2 } },
  }),
  managementOperation({
    ...{ ...one, verb: "removePlan", method: "post", path: "/plans/{id}/remove", kind: "change", also: [] },
    summary: "Remove a plan",
    description: "Refused while an organization is on it. The answer is the plan as it was.",
    takes: Type.Object({}),
    example: { id: "pro", takes: {}, answer: pro },
  }),
  managementOperation({
    ...{ verb: "planHistory", method: "get", path: "/plans/{id}/history", id: "name", tag: "Plans", kind: "reading" },
    also: ["viewer"],
    summary: "Read the history of a plan",
    description:
      "The entries of the audit log about it, newest first: what was in force when, also of a plan of sluice.yaml or one that was removed.",
    takes: Type.Object(pageParameters),
    answers: auditPage,
    example: { id: "pro", answer: { data: [changed], next_cursor: null } },
    encode: (page) => pageShown(page, auditShown),
    read: (value: { data: AuditEntry[]; nextCursor: string | null }) => pageRead(value, (entry) => entry),
  }),
];
