/** GET /v1/service/usage in the contract. */
import { credentialFaults } from "../faults.ts";
import type { Operation } from "../operation.ts";
import { UsageRecord } from "../shapes.ts";

const json = "application/json";

export const getUsage: Operation = {
  operationId: "getUsage",
  method: "get",
  path: "/v1/service/usage",
  tag: "Usage",
  summary: "Read the usage windows",
  description:
    "The five-hour session, the week and the billing month of the calling organization. A session that is not open shows 0 percent and a reset in five hours.",
  scope: "usage:read",
  success: {
    description: "The three windows.",
    headers: [],
    content: {
      [json]: {
        schema: UsageRecord,
        example: {
          object: "service.usage",
          session: { usage_percent: 12.5, reset_at: "2026-11-21T08:00:00.000Z" },
          week: { usage_percent: 3.07, reset_at: "2026-11-26T09:30:00.000Z" },
          month: { usage_percent: 1, reset_at: "2026-12-19T09:30:00.000Z" },
        },
      },
    },
  },
  faults: [...credentialFaults],
  otherFaults: true,
  examples: [
    {
      name: "usage",
      summary: "The windows of this key's organization",
      needs: [],
      request: () => ({ path: "/v1/service/usage" }),
      status: 200,
      contentType: json,
    },
  ],
};
