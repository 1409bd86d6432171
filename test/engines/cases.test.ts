// Every case of cases.jsonl, by every client in every mode, on one node: the client sees what `want` says, in strict
// accordance with its protocol. TEST_ENGINES_TABLE=file writes what was seen, one line a case.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { Model } from "../../src/config/settings/model.ts";
import { Upstream } from "../../src/config/settings/upstream.ts";
import { cases, type EngineCase } from "./case.ts";
import { goodText } from "./good.ts";
import { type CaseService, type Outcome, startCaseService } from "./service.ts";
import { furtherWants } from "./wants.ts";

/** Whether sluice.yaml knows the settings that some cases need. */
const has = { dialect: "dialect" in Upstream.properties, bounds: "bounds" in Model.properties };
const runnable = cases.filter(
  (one) =>
    (one.dialect === undefined || (has.dialect && /^[a-z.]+$/.test(one.dialect))) &&
    (one.bounds === undefined || has.bounds) &&
    (one.want?.end !== undefined || furtherWants(one.id) !== undefined),
);

let service: CaseService;
beforeAll(async () => {
  service = await startCaseService(runnable);
});
afterAll(() => service.stop());

const table: string[] = [];
afterAll(() => {
  const file = process.env.TEST_ENGINES_TABLE;
  if (file) writeFileSync(file, `${table.join("\n")}\n`);
});

describe("an engine as it is", () => {
  for (const one of runnable)
    test(`${one.id} ${one.title ?? one.kind}`, async () => {
      const found = (await service.run(one)).flatMap((outcome) => flawsOf(one, outcome));
      table.push(`${one.id}\t${one.kind}\t${one.seen}\t${found.length === 0 ? "pass" : "FAIL"}\t${found.join("; ")}`);
      expect(found).toEqual([]);
    });
});

function flawsOf(one: EngineCase, outcome: Outcome): string[] {
  const { client, mode, problems } = outcome;
  const { want = {} } = one;
  const flaws = problems.map((problem) => `contract: ${problem}`);
  const isSaved = mode === "p" && want.end === "fail";
  const end = isSaved ? "stop" : want.end;
  const flaw = (what: string, seen: unknown, wanted: unknown) => {
    if (!Bun.deepEquals(seen, wanted)) flaws.push(`${what} is ${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`);
  };
  if (end !== undefined && outcome.end !== end) flaw("end", `${outcome.end} ${outcome.status} ${outcome.error}`, end);
  if (isSaved) flaw("text", outcome.text, goodText);
  if (want.text !== undefined && !isSaved) flaw("text", outcome.text, want.text);
  if (want.calls) flaw("calls", outcome.calls, want.calls);
  for (const [name, count] of Object.entries(want.usage ?? {}))
    flaw(name, outcome.usage[name as keyof Outcome["usage"]], count);
  if (outcome.hasHalves) flaws.push("a half of a character");
  flaws.push(...(furtherWants(one.id)?.(outcome) ?? []));
  return flaws.map((text) => `${client} ${mode}: ${text}`);
}
