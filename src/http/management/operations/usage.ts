/** Usage of organizations, and requests. */
import Type from "typebox";
import { oneOf } from "../../../protocol/shapes/contract.ts";
import { units_max } from "../../../store/ledger.ts";
import { exampleAt, exampleIds } from "../examples.ts";
import { type ManagementOperation, managementOperation, words } from "../operation.ts";
import { type ReadRequest, readRequest } from "../read-request.ts";
import {
  type ReadAdjustment,
  type ReadCheck,
  type ReadUsage,
  readAdjustment,
  readCheck,
  readUsage,
} from "../read-usage.ts";
import { adjustmentJson, checkJson, requestJson, usageJson } from "../records.ts";
import { OperatorRequestRecord, OrganizationUsageRecord, UsageAdjustmentRecord, UsageCheckRecord } from "../shapes.ts";

const seen = ["viewer", "organization-admin"] as const;
const noneLost = { receipts: 0, units: 0, noticed_at: null, moved_at: null };
const window = {
  usage_percent: 12.5,
  used: 125_000,
  held: 0,
  limit: 1_000_000,
  starts_at: exampleAt,
  reset_at: exampleAt,
};
export const usageOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "readUsage", method: "get", path: "/organizations/{id}/usage", id: "organization", tag: "Usage" },
    ...{ kind: "reading", also: seen },
    summary: "Read the usage of an organization",
    description: "Its windows as they are now, in micro-units.",
    answers: OrganizationUsageRecord,
    example: {
      id: "acme",
      answer: {
        ...{ organization_id: exampleIds.organization, organization: "acme", plan: "pro", at: exampleAt },
        ...{ session: window, week: window, month: window },
        extra_usage: { enabled: false, cap_units: null, used: 0, held: 0 },
        ...{ running_requests: 3, concurrent_requests: 20 },
      },
    },
    encode: usageJson,
    read: (value: ReadUsage) => readUsage(value),
  }),
  managementOperation({
    ...{ verb: "adjustUsage", method: "post", path: "/organizations/{id}/usage/adjustments", id: "organization" },
    ...{ tag: "Usage", kind: "act", also: [] },
    summary: "Add units to the current usage, or subtract them",
    description: "Each call adds once more.",
    takes: Type.Object({
      window: oneOf(["session", "week", "month", "extra", "all"], { description: "`all`: session, week and month." }),
      units: Type.Integer({ minimum: -units_max, maximum: units_max, description: "Below 0: to subtract, down to 0." }),
      reason: words("For the audit log."),
    }),
    answers: UsageAdjustmentRecord,
    example: {
      ...{ id: "acme", takes: { window: "session", units: -250_000, reason: "outage of 3 May" } },
      answer: {
        ...{ organization_id: exampleIds.organization, organization: "acme", reason: "outage of 3 May" },
        entries: [{ id: exampleIds.request, window: "session", units: -125_000 }],
      },
    },
    encode: adjustmentJson,
    read: (value: ReadAdjustment) => readAdjustment(value),
  }),
  managementOperation({
    ...{ verb: "checkUsage", method: "post", path: "/usage/check", tag: "Usage", kind: "act", also: ["viewer"] },
    summary: "Compare every total with its records",
    description: "Of the past year. It takes its time on much data; with `full`, more.",
    takes: Type.Object({ full: Type.Boolean({ description: "Read the records of sealed windows too." }) }),
    answers: UsageCheckRecord,
    example: {
      takes: { full: false },
      answer: { differences: [], trusted: { windows: 12, records: 3400, days: 2, day_records: 900 }, lost: noneLost },
    },
    encode: checkJson,
    read: (value: ReadCheck) => readCheck(value),
  }),
  managementOperation({
    ...{ verb: "findRequest", method: "get", path: "/requests/{id}", id: "id", tag: "Requests", kind: "reading" },
    also: seen,
    summary: "Look up a request",
    description: "By the `x-service-request-id` of its answer: outcome, route, timing and receipt.",
    answers: OperatorRequestRecord,
    example: {
      id: exampleIds.request,
      answer: {
        ...{
          object: "service.request",
          id: exampleIds.request,
          operation: "chat.completions",
          model: null,
          stream: null,
        },
        ...{ key_id: exampleIds.key, created_at: exampleAt, ended_at: exampleAt, outcome: "refused" },
        ...{ stopped_by: null, error_code: "usage_limit_reached", attempts: null, recovered: false },
        usage: {
          ...{ input_tokens: 0, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 0, reasoning_tokens: 0 },
          source: "estimated",
        },
        ...{ prices: null, units: { held: 0, charged: 0, uncharged: 0 }, billing_source: null, windows: null },
        ...{ organization_id: exampleIds.organization, organization: "acme", route: null },
        ...{ report_rejected: null, duration_ms: null },
      },
    },
    encode: requestJson,
    read: (value: ReadRequest) => readRequest(value),
  }),
];
