/** The metrics of a node reflect its events. */

import { expect, test } from "bun:test";
import { noUsage } from "../../../src/core/inference/usage.ts";
import type { Ended } from "../../../src/core/usage/record.ts";
import { perOutputToken_s, prometheusMetrics } from "../../../src/features/telemetry/metrics.ts";

const metricsOf = (isPrivate = true) => prometheusMetrics({ version: "1", isPrivate, organizations_max: () => 3 });

test("each event counts in its own metric, by as much as it was", async () => {
  const metrics = metricsOf();
  metrics.shed("key");
  metrics.decision("refused", "rate_limit_exceeded");
  metrics.grant("granted", 20);
  metrics.unauthenticated("invalid_api_key");
  metrics.settled({ answer: "settled", charged: 70, uncharged: 5 });
  metrics.settled({ answer: "already" });
  metrics.recovered(4);
  metrics.receiptsLost(3);
  metrics.attempt("main", "answered");
  metrics.firstPart("main", 0.5);
  metrics.waited({ model: "acme/m", outcome: "served", ms: 1_500 });
  metrics.locked(20);
  metrics.revocationPropagation(0.2);
  metrics.resolved("main", null);
  metrics.lost("postgres");
  metrics.opened("redis");
  metrics.answered("redis", 5, "connection");
  metrics.answered("redis", 5, null);
  const text = await metrics.render("prometheus");
  for (const line of [
    'http_shed_total{full="key"} 1',
    'admission_decisions_total{decision="refused",reason="rate_limit_exceeded"} 1',
    'admission_grant_wait_seconds_sum{answer="granted"} 0.02',
    'authentication_failures_total{code="invalid_api_key"} 1',
    'usage_cost_total{class="charged"} 7e-8',
    'usage_cost_total{class="uncharged"} 5e-9',
    "usage_recovered_total 4",
    "usage_receipts_lost_total 3",
    'upstream_attempts_total{upstream="main",outcome="answered"} 1',
    'upstream_time_to_first_part_seconds_sum{upstream="main"} 0.5',
    'upstream_queue_wait_seconds_sum{model="acme/m",outcome="served"} 1.5',
    "admission_batch_lock_wait_seconds_sum 0.02",
    "key_revocation_propagation_seconds_sum 0.2",
    'upstream_resolutions_total{upstream="main",outcome="answered"} 1',
    'store_connections_lost_total{store="postgres"} 1',
    'store_connections_opened_total{store="redis"} 1',
    'store_statement_failures_total{store="redis",fault="connection"} 1',
    'store_statement_duration_seconds_count{store="redis"} 2',
  ])
    expect(text).toContain(`\n${line}\n`);
});

test("a drain that somebody has to end is told with its beginning; clients see neither names nor how many", async () => {
  const at = (second: number) => new Date(second * 1000);
  const drains = [
    { upstream: "gpu-1", replica: null, drainedAt: at(7), until: null },
    { upstream: "gpu-2", replica: "10.0.0.7", drainedAt: at(5), until: null },
    { upstream: "gpu-3", replica: null, drainedAt: at(3), until: at(9) },
  ];
  const linesOf = async (isPrivate: boolean) => {
    const metrics = metricsOf(isPrivate);
    metrics.drains(() => drains);
    return (await metrics.render("prometheus")).split("\n").filter((line) => line.startsWith("upstream_drained_since"));
  };
  expect(await linesOf(true)).toEqual([
    'upstream_drained_since_seconds{upstream="gpu-1",replica=""} 7',
    'upstream_drained_since_seconds{upstream="gpu-2",replica="10.0.0.7"} 5',
  ]);
  expect(await linesOf(false)).toEqual(['upstream_drained_since_seconds{upstream="",replica=""} 5']);
});

test("a batch that the ledger did not answer is a failure, and one that it answered is none", async () => {
  const metrics = metricsOf();
  metrics.batch(10, 5, true);
  metrics.batch(4, 5, true);
  metrics.batch(3, 5, false);
  const text = await metrics.render("prometheus");
  expect(text).toContain("\nadmission_batch_failures_total 1\n");
  expect(text).toContain("\nadmission_batch_commands_sum 17\n");
});

test("the time of a token is that of the answer after its first part, by the tokens that came then", () => {
  const ended = {
    stream: true,
    outcome: "completed",
    usage: { ...noUsage, outputTokens: 11 },
    firstPart_ms: 400,
    total_ms: 2_400,
  } as Ended;
  expect(perOutputToken_s(ended)).toBe(0.2);
  expect(perOutputToken_s({ ...ended, total_ms: 300 })).toBe(0);
  for (const more of [{ stream: false }, { outcome: "cancelled" }, { firstPart_ms: null }] as const)
    expect(perOutputToken_s({ ...ended, ...more })).toBeNull();
  expect(perOutputToken_s({ ...ended, usage: { ...noUsage, outputTokens: 1 } })).toBeNull();
});
