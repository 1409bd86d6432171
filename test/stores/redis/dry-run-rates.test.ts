/** A request that warms a node up goes all of the way of a counted one, has room, and leaves nothing in Redis. */
import { expect, test } from "bun:test";
import { dryRunRates } from "../../../src/stores/redis/dry-run-rates.ts";
import { newHex, newRequestId } from "../../core/store/ledger-stores.ts";
import { ofOrganization } from "../../core/store/rates-stores.ts";

test.each([
  ["answers", () => Promise.resolve()],
  ["is away", () => Promise.reject(new Error("away"))],
])("a request has room whatever its limits, while Redis %s", async (_, ping) => {
  const waits: number[] = [];
  const rates = dryRunRates({
    ping(wait_ms) {
      waits.push(wait_ms);
      return ping();
    },
  });
  const organizationId = `org_${newHex()}`;
  for (let request = 0; request < 3; request++) {
    const { answer } = await rates.take({
      organizationId,
      requestId: newRequestId(),
      tokens: 1,
      tokens_min: 1,
      subjects: ofOrganization(organizationId, { requestsPerMinute: 1, tokensPerMinute: 1 }),
    });
    expect(answer).toBe("taken");
  }
  expect(waits).toHaveLength(3);
});
