/**
 * When a part of a request is not sent to the engine, that is counted each time, and logged once an hour for each route
 * and kind of part.
 */

import { expect, test } from "bun:test";
import type { Loss } from "../../src/core/protocol/codec.ts";
import { defaultTimeouts } from "../../src/core/upstream/target.ts";
import type { LostField } from "../../src/core/usage/record.ts";
import { lossLog } from "../../src/node/loss-log.ts";

test("a loss is counted each time, and logged once an hour for each route and kind", () => {
  let now_ms = 0;
  const counted: string[] = [];
  const logged: unknown[] = [];
  const lost = lossLog(
    {
      metrics: { partLost: (upstream, loss) => void counted.push(`${upstream} ${loss}`) },
      log: { event: (level, event, fields) => void logged.push([level, event, fields?.model, fields?.loss]) },
    },
    () => now_ms,
  );
  const upstream = {
    name: "main",
    url: "http://a/v1",
    protocol: "openai-chat",
    apiKey: null,
    timeouts: defaultTimeouts,
  } as const;
  const says = (model: string, loss: Loss): void => {
    const one: LostField = { model: `acme/${model}`, route: { upstream, model, priority: 0, weight: 1 }, loss };
    lost(one);
  };
  says("one", "thoughts");
  says("one", "thoughts");
  says("one", "order");
  says("two", "thoughts");
  now_ms = 3_599_999;
  says("one", "thoughts");
  now_ms = 3_600_000;
  says("one", "thoughts");
  expect(counted).toHaveLength(6);
  expect(logged).toEqual([
    ["warn", "request_part_lost", "acme/one", "thoughts"],
    ["warn", "request_part_lost", "acme/one", "order"],
    ["warn", "request_part_lost", "acme/two", "thoughts"],
    ["warn", "request_part_lost", "acme/one", "thoughts"],
  ]);
});
