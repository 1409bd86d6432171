/** The metrics of a node with several workers, merged into one text. */
import { expect, test } from "bun:test";
import type { Told } from "../../../src/core/http/observer.ts";
import { merger } from "../../../src/features/telemetry/merged.ts";
import { instruments } from "../../../src/features/telemetry/registry.ts";
import { questions } from "../../../src/features/workers/questions.ts";

const route = "/v1/models";
const ended = { route, status: "200", code: "" };

function worker(requests: number) {
  const one = instruments();
  one.inc("http_requests_total", ended, requests);
  for (let count = 0; count < requests; count++) one.observe("http_request_duration_seconds", { route }, 0.03);
  return one;
}
const told = async (...some: (ReturnType<typeof instruments> | null)[]) =>
  new Map(await Promise.all(some.map(async (one, index) => [index + 1, (await one?.values()) ?? null] as const)));

test("counters and histograms are added up; gauges are summed, the largest, or each worker's, by their rows", async () => {
  const [one, two] = [worker(3), worker(4)];
  one.read("http_open_requests", () => 5);
  two.read("http_open_requests", () => 6);
  one.read("usage_ledger_mismatch", () => Number.NaN);
  two.read("usage_ledger_mismatch", () => 2);
  one.read("database_dead_rows", () => 70);
  two.read("database_dead_rows", () => 60);
  one.read("process_open_fds", () => 30);
  two.read("process_open_fds", () => 40);
  one.read("configuration_info", () => [[{ hash: "a" }, 1]]);
  two.read("configuration_info", () => [[{ hash: "a" }, 1]]);
  const text = await merger().text(await told(one, two), "prometheus");
  for (const line of [
    `http_requests_total{route="${route}",status="200",code=""} 7`,
    `http_request_duration_seconds_bucket{le="0.02",route="${route}"} 0`,
    `http_request_duration_seconds_bucket{le="0.05",route="${route}"} 7`,
    `http_request_duration_seconds_bucket{le="+Inf",route="${route}"} 7`,
    `http_request_duration_seconds_count{route="${route}"} 7`,
    "http_open_requests 11",
    "usage_ledger_mismatch 2",
    "database_dead_rows 70",
    'process_open_fds{worker="1"} 30',
    'process_open_fds{worker="2"} 40',
    'configuration_info{hash="a"} 1',
  ])
    expect(text).toContain(`\n${line}\n`);
});

test("one worker's metrics are rendered as without workers, but for the labels of its own", async () => {
  const one = worker(2);
  for (const format of ["prometheus", "openmetrics"] as const) {
    const plain = (text: string) => text.replaceAll('{worker="1"}', "").split("\n").sort();
    expect(plain(await merger().text(await told(one), format))).toEqual(plain(await one.render(format)));
  }
});

const count = (text: string) => /^http_requests_total\{.*\} (\d+)$/m.exec(text)?.[1];

test("what a worker had counted is counted on when it is gone, or does not answer", async () => {
  const merging = merger();
  const [one, two] = [worker(3), worker(4)];
  two.read("http_open_requests", () => 9);
  two.read("process_open_fds", () => 9);
  expect(count(await merging.text(await told(one, two), "prometheus"))).toBe("7");
  const silent = await merging.text(await told(one, null), "prometheus");
  expect(count(silent)).toBe("7");
  expect(silent).toContain("\nhttp_open_requests 0\n");
  expect(silent).not.toContain('process_open_fds{worker="2"}');
  merging.gone(2);
  merging.gone(2);
  expect(count(await merging.text(await told(one, worker(1)), "prometheus"))).toBe("8");
  one.inc("http_requests_total", ended);
  merging.gone(2);
  expect(count(await merging.text(await told(one, worker(0)), "prometheus"))).toBe("9");
});

test("a worker that ends during a scrape, after its answer, is counted once, and no count falls in the next", async () => {
  const merging = merger();
  const [one, two] = [worker(3), worker(4)];
  expect(count(await merging.text(await told(one, two), "prometheus"))).toBe("7");
  two.inc("http_requests_total", ended, 5);
  const asking = questions<Told[]>(60_000);
  let question = -1;
  const asked = asking.ask([1, 2], (number) => {
    question = number;
  });
  asking.told(2, question, await two.values());
  asking.gone(2);
  merging.gone(2);
  asking.told(1, question, await one.values());
  expect(count(await merging.text(await asked, "prometheus"))).toBe("7");
  expect(count(await merging.text(await told(one), "prometheus"))).toBe("7");
});
